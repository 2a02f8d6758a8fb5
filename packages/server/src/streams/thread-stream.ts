import { encodeSse } from '@skein/base'
import type { NumberedEvent, Runtime } from '@skein/runtime'
import type { SubscribeOptions } from '@skein/runtime/serving'
import { publicEventJson } from '../operations/event-json.ts'

/** Yields the numbered events of one thread as server-sent events. */
export async function* threadStream(
  runtime: Runtime,
  threadId: string,
  options: SubscribeOptions,
): AsyncGenerator<string, void, undefined> {
  for await (const numbered of runtime.subscribe(threadId, options)) yield* encodedEvent(numbered)
  if (!options.signal?.aborted) yield END_EVENT
}

/**
 * The maximum number of characters that are written to a connection in one piece. A large event is written in pieces,
 * each of which waits until the client has read, so that no event waits in memory as a whole.
 */
const PIECE_LENGTH = 16 * 1024

/** Returns where the piece that begins at `start` ends. It does not cut a character in two. */
export function pieceEnd(text: string, start = 0): number {
  const end = start + PIECE_LENGTH
  if (end >= text.length) return text.length
  const isPair = text.codePointAt(end - 1)! > 0xffff // both halves of a surrogate pair
  return isPair ? end - 1 : end
}

/**
 * Encodes an event as a server-sent event, with texts before and after its JSON. The JSON of a large event comes in
 * slices: it is shared by all readers, so that a slow reader holds one slice and no copy.
 */
export function* encodedEvent(
  { id, event }: NumberedEvent,
  [before, after]: readonly [string, string] = ['', ''],
): Generator<string, void, undefined> {
  const json = publicEventJson(event)
  if (json.length <= PIECE_LENGTH) {
    yield encodeSse({ id, event: event.type, data: `${before}${json}${after}` })
    return
  }
  yield encodeSse({ id, event: event.type, data: before }).trimEnd()
  for (let start = 0; start < json.length;) {
    const end = pieceEnd(json, start)
    yield json.slice(start, end)
    start = end
  }
  yield `${after}\n\n`
}

/**
 * Tells the client that no more events follow: the thread was removed, or it has come to rest and the client asked
 * for `untilParked`.
 */
export const END_EVENT: string = encodeSse({ event: 'stream_end', data: '{}' })
