import type { ErrorOrigin } from '../contract/error.ts'
import { emptyAnswer } from './member.ts'

/** A stream whose first content has arrived. From then on no other model can take over. */
interface OpenedStream<T> {
  /** The items up to and including the first content. */
  readonly first: readonly T[]
  readonly rest: AsyncIterator<readonly T[]>
}

/** Reads a stream up to its first content; throws errors before that, so that another member can be tried. */
export async function openStream<T>(
  source: AsyncIterable<readonly T[]>,
  isContent: (item: T) => boolean,
  origin: ErrorOrigin,
): Promise<OpenedStream<T>> {
  const rest = source[Symbol.asyncIterator]()
  const first: T[] = []
  for (;;) {
    const step = await rest.next()
    if (step.done) throw emptyAnswer(origin)
    for (const item of step.value) first.push(item)
    if (step.value.some(isContent)) return { first, rest }
  }
}

/** Yields the whole stream and closes it if the consumer stops early. */
export async function* readOpened<T>(opened: OpenedStream<T>): AsyncGenerator<readonly T[], void> {
  const { first, rest } = opened
  let isDone = false
  try {
    yield first
    for (;;) {
      const step = await rest.next()
      if ((isDone = step.done === true)) return
      yield step.value
    }
  } catch (error) {
    isDone = true
    throw error
  } finally {
    if (!isDone) await rest.return?.()
  }
}
