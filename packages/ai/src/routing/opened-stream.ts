import { ErrorCode, type ErrorOrigin, UPPError } from '../contract/error.ts'
import type { StreamEvent } from '../contract/event.ts'

/** A stream whose first content has arrived: from here on another model cannot take over. */
export interface OpenedStream<T> {
  /** What came up to and with the first content. */
  readonly first: readonly T[]
  readonly rest: AsyncIterator<readonly T[]>
}

/** Reads until there is something to show. Fails as long as nothing was, so that one can try again. */
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

/** Yields the whole stream and closes it when its reader leaves. */
export async function* readOpened<T>({
  first,
  rest,
}: OpenedStream<T>): AsyncGenerator<readonly T[], void, undefined> {
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

/** Everything but the framing of a text or of reasoning that has not begun yet. */
export function isContent({ type, delta }: StreamEvent): boolean {
  if (type === 'message_start') return false
  return type !== 'content_block_start' || (delta.block !== 'text' && delta.block !== 'reasoning')
}

/** A waiting call that answers without its terminal event is no answer either. */
export function checkedAnswer(
  events: readonly StreamEvent[],
  origin: ErrorOrigin,
): readonly StreamEvent[] {
  if (events.some(({ type }) => type === 'message_stop')) return events
  throw emptyAnswer(origin)
}

function emptyAnswer(origin: ErrorOrigin): UPPError {
  return new UPPError(`The answer of ${origin.provider} ended without its terminal event.`, {
    code: ErrorCode.InvalidResponse,
    ...origin,
  })
}
