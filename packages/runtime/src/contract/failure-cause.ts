import { messageOf, redactSecrets, SkeinError } from '@skein/base'
import type { FailureCause } from './event.ts'

/** How many lines of a stack are kept. */
const STACK_LINES = 5

const withoutFolders = (word: string): string =>
  word.slice(Math.max(word.lastIndexOf('/'), word.lastIndexOf('\\')) + 1)

/** Describes an error for the log of the thread that failed because of it. */
export function failureCause(error: unknown): FailureCause {
  const { code, hint } = SkeinError.is(error) ? error : { code: undefined, hint: undefined }
  const lines = stackOf(error).split('\n')
  const stack = lines
    .filter((line) => line.trimStart().startsWith('at '))
    .slice(0, STACK_LINES)
    // Folders are removed: they tell where the program is installed, which readers of the log need not know.
    .map((line) =>
      line
        .trim()
        .split(/([\s(])/)
        .map(withoutFolders)
        .join(''),
    )
  const cause = {
    code,
    message: redactSecrets(messageOf(error), []),
    hint,
    stack: stack.length > 0 ? stack.join('\n') : undefined,
  }
  // The conversion removes undefined members, which an event must not have.
  return JSON.parse(JSON.stringify(cause)) as FailureCause
}

/** Returns the stack of an error, without secrets. Code of the application may throw anything, e.g. a proxy. */
function stackOf(error: unknown): string {
  try {
    const { stack } = error as { readonly stack?: unknown }
    return typeof stack === 'string' ? redactSecrets(stack, []) : ''
  } catch {
    return ''
  }
}
