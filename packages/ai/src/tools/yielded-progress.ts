import { isDeferred } from '../contract/tool.ts'
import { toResultJson } from './result.ts'

export function isGenerator(value: unknown): value is AsyncGenerator<unknown, unknown> {
  if (typeof value !== 'object' || value === null) return false
  const { next, return: end } = value as Partial<AsyncGenerator>
  return Symbol.asyncIterator in value && typeof next === 'function' && typeof end === 'function'
}

/**
 * Reads a tool that yields its progress. Its result is what it returns, or the last value it yields if it
 * returns nothing. After an abort the tool is asked to stop and nothing more is reported.
 */
export async function readGenerator(
  generator: AsyncGenerator<unknown, unknown>,
  signal: AbortSignal,
  progress: (output: unknown) => void,
): Promise<unknown> {
  let last: unknown
  let isDone = false
  try {
    for (;;) {
      const step = await generator.next()
      if ((isDone = step.done === true)) return step.value === undefined ? last : step.value
      signal.throwIfAborted()
      if (isDeferred(step.value)) return step.value
      last = step.value
      progress(toResultJson(last, 'progress'))
    }
  } finally {
    if (!isDone) void Promise.resolve(generator.return(undefined)).catch(() => {}) // its error has no reader
  }
}
