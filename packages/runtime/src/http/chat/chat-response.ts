import {
  encodeUIChunk,
  UI_STREAM_DONE,
  UI_STREAM_HEADERS,
  type UIMessageChunk,
} from '@skein/threads/ai-sdk'
import { accountOf } from '../principal.ts'
import type { Call } from '../route.ts'
import { eventStream } from '../stream/event-stream.ts'

/** Sends chunks as the UI message stream that `useChat` reads. Closing it stops nothing. */
export function chatResponse(
  call: Call,
  chunks: (signal: AbortSignal) => AsyncIterable<UIMessageChunk>,
): Response {
  const { request, principal, services } = call
  const response = eventStream({
    events: (signal) => encoded(call, chunks(signal), signal),
    client: accountOf(principal),
    streams: services.streams,
    limits: services.limits,
    timers: services.timers,
    clock: services.clock,
    signal: request.signal,
    expiresAt: principal.expiresAt,
    disconnect: call.disconnect,
    onError: services.report,
  })
  const version = 'x-vercel-ai-ui-message-stream'
  response.headers.set(version, UI_STREAM_HEADERS[version]!)
  return response
}

async function* encoded(
  { services }: Call,
  chunks: AsyncIterable<UIMessageChunk>,
  signal: AbortSignal,
): AsyncGenerator<string, void> {
  try {
    for await (const chunk of chunks) yield encodeUIChunk(chunk)
  } catch (error) {
    if (signal.aborted) return
    services.report(error)
    const errorText = 'Something went wrong on the server.'
    yield encodeUIChunk({ type: 'error', errorText })
    yield encodeUIChunk({ type: 'finish', finishReason: 'error' })
  }
  if (!signal.aborted) yield UI_STREAM_DONE
}
