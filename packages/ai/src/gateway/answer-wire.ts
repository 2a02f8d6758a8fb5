import type { JsonObject } from '@skein/base'
import { isUPPError } from '../contract/error.ts'
import type { StreamEvent } from '../contract/event.ts'
import type { EncodeContext, ServerError, WireServer } from '../wires/wire-server.ts'

/** One request of a client, to be answered with the events of one message. */
export interface WireAnswer {
  readonly wire: WireServer
  readonly context: EncodeContext
  readonly events: AsyncIterable<readonly StreamEvent[]>
  /** How a failure is told to the client. Default: as it is, if it is a `UPPError`. */
  readonly toServerError?: (error: unknown) => ServerError
}

/** An HTTP response before it becomes one; a stream is a text per batch of events. */
export interface WireReply {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | AsyncGenerator<string, void>
}

/**
 * Answers in the format of a wire. A stream begins only when the model has something to say, so
 * that what fails before is an HTTP error like any other.
 */
export async function answerWire(answer: WireAnswer): Promise<WireReply> {
  const { wire, context, toServerError = asServerError } = answer
  try {
    return context.request.stream ? await streamed(answer) : await whole(answer)
  } catch (error) {
    return errorReply(wire, toServerError(error))
  }
}

/** An error in the words of a wire. */
export function errorReply(wire: WireServer, error: ServerError): WireReply {
  const { status, body } = wire.encodeError(error)
  const wait = error.retryAfterMs
  return {
    status,
    headers: {
      'content-type': 'application/json',
      ...(wait !== undefined && { 'retry-after': String(Math.ceil(wait / 1000)) }),
    },
    body: JSON.stringify(body),
  }
}

/** The error as the client may see it; anything that is not ours says nothing of its inside. */
export function asServerError(error: unknown): ServerError {
  if (!isUPPError(error)) return { code: 'PROVIDER_ERROR', message: 'The request failed.' }
  const { code, message, statusCode, retryAfterMs } = error
  return {
    code,
    message,
    ...(statusCode !== undefined && statusCode >= 400 && { statusCode }),
    ...(retryAfterMs !== undefined && { retryAfterMs }),
  }
}

async function whole({ wire, context, events }: WireAnswer): Promise<WireReply> {
  const all: StreamEvent[] = []
  for await (const batch of events) for (const event of batch) all.push(event)
  const body: JsonObject = wire.encodeResponse(all, context)
  const text = JSON.stringify(body)
  // Without its end it is no answer: what a broken server would have sent of it.
  const isWhole = all.at(-1)?.type === 'message_stop'
  return {
    status: 200,
    headers: { 'content-type': 'application/json' },
    body: isWhole ? text : text.slice(0, text.length >> 1),
  }
}

async function streamed(answer: WireAnswer): Promise<WireReply> {
  const batches = answer.events[Symbol.asyncIterator]()
  const held: (readonly StreamEvent[])[] = []
  for (;;) {
    const step = await batches.next()
    if (step.done) break
    held.push(step.value)
    if (step.value.some(({ type }) => type !== 'message_start')) break
  }
  return {
    status: 200,
    headers: { 'content-type': streamTypes[answer.wire.name], 'cache-control': 'no-cache' },
    body: encode(answer, held, batches),
  }
}

const sse = 'text/event-stream; charset=utf-8'

const streamTypes: Readonly<Record<WireServer['name'], string>> = {
  'openai-chat': sse,
  'openai-responses': sse,
  'anthropic-messages': sse,
  'google-generate': sse,
  'ollama-chat': 'application/x-ndjson',
}

async function* encode(
  { wire, context, toServerError = asServerError }: WireAnswer,
  held: readonly (readonly StreamEvent[])[],
  batches: AsyncIterator<readonly StreamEvent[]>,
): AsyncGenerator<string, void> {
  const encoder = wire.createEncoder(context)
  let last: StreamEvent | undefined
  const encodeBatch = (batch: readonly StreamEvent[]): string => {
    let text = ''
    for (const event of batch) text += encoder.push(event)
    last = batch.at(-1) ?? last
    return text
  }
  try {
    for (const batch of held) yield encodeBatch(batch)
    for (;;) {
      const step = await batches.next()
      if (step.done) break
      yield encodeBatch(step.value)
    }
    // A model that stops in the middle must look like that to its reader, too.
    if (last?.type === 'message_stop') yield encoder.end()
  } catch (error) {
    yield encoder.fail(toServerError(error))
  } finally {
    await batches.return?.()
  }
}
