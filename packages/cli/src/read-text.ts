import { text } from 'node:stream/consumers'
import { usageError } from './command-error.ts'

/** A text that was given: itself, or standard input for `-`. */
export async function readText(given: string | undefined, what: string): Promise<string> {
  if (given !== undefined && given !== '-') return given
  if (given === undefined && process.stdin.isTTY)
    throw usageError(
      `${what} is missing.`,
      'Give it as an argument, or `-` to read standard input.',
    )
  const read = (await text(process.stdin)).trim()
  if (read === '') throw usageError(`${what} is empty.`, 'Standard input had nothing to say.')
  return read
}
