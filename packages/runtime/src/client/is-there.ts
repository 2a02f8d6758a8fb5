import { ClientError } from './client-error.ts'

/** False instead of a refusal that says there was nothing. */
export async function isThere(done: Promise<void>, code: string): Promise<boolean> {
  try {
    await done
    return true
  } catch (error) {
    if (error instanceof ClientError && error.code === code) return false
    throw error
  }
}
