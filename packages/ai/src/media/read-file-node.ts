import type * as Files from 'node:fs/promises'
import { ErrorCode, UPPError } from '../error.ts'

interface ProcessLike {
  getBuiltinModule?(name: 'node:fs/promises'): typeof Files
}

/** Reads a file on Node, Bun and Deno. Elsewhere there are none, and the error says so. */
export async function readFileBytes(path: string): Promise<Uint8Array> {
  const { process } = globalThis as { process?: ProcessLike }
  const files = process?.getBuiltinModule?.('node:fs/promises')
  if (!files) throw unreadable(path, 'this platform has no files', undefined)
  try {
    return await files.readFile(path)
  } catch (error) {
    throw unreadable(path, (error as { code?: string }).code ?? 'it cannot be read', error)
  }
}

function unreadable(path: string, reason: string, cause: unknown): UPPError {
  return new UPPError(`The file ${JSON.stringify(path)} was not read: ${reason}.`, {
    code: ErrorCode.InvalidRequest,
    provider: 'skein',
    modality: 'image',
    cause,
    hint: 'Use fromBytes with bytes that you have.',
  })
}
