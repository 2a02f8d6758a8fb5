import { encodeSse } from '@skein/base'
import type { Runtime, SubscribeOptions } from '../../runtime-api.ts'
import { publicEventJson } from './public-event.ts'

/** Ends a stream that has nothing more to say: the thread was removed, or is parked and that was asked for. */
export const END_EVENT: string = encodeSse({ event: 'stream_end', data: '{}' })

/** Numbered events of one thread as server-sent events. */
export async function* threadStream(
  runtime: Runtime,
  threadId: string,
  options: SubscribeOptions,
): AsyncGenerator<string, void, undefined> {
  for await (const { id, event } of runtime.subscribe(threadId, options))
    yield encodeSse({ id, event: event.type, data: publicEventJson(event) })
  if (!options.signal?.aborted) yield END_EVENT
}
