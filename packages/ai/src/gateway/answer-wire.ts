import type { JsonObject } from '@skein/base'
import { ErrorCode, isUPPError, UPPError } from '../contract/error.ts'
import type { StreamEvent } from '../contract/event.ts'
import type { EncodeContext, ServerError, WireServer } from '../wires/wire-server.ts'
import { SilenceReader } from './silence.ts'

/** One request of a client and the events of the message that answers it. */
interface WireAnswer {
  readonly wire: WireServer
  readonly context: EncodeContext
  readonly events: AsyncIterable<readonly StreamEvent[]>
  /** Converts a failure to the error sent to the client. Default: `asServerError`. */
  readonly toServerError?: (error: unknown) => ServerError
  /** How long a stream may be silent before a ping is sent. Default 10 seconds; 0 for never. */
  readonly pingMs?: number
}

const DEFAULT_PING_MS = 10_000

/** The parts of an HTTP response. A streamed body yields one text per batch of events. */
export interface WireReply {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | AsyncGenerator<string, void>
}

/**
 * Writes the response to a client in the vendor format that the client uses. A stream starts when the first content
 * has arrived, so that an earlier failure is sent with an HTTP error status; or when the model has been silent for
 * `pingMs`, because proxies end connections without a response. From then on, pings are sent while it is silent.
 */
export async function answerWire(answer: WireAnswer): Promise<WireReply> {
  const { wire, context, toServerError = asServerError } = answer
  try {
    return context.request.stream ? await streamed(answer) : await whole(answer)
  } catch (error) {
    return errorReply(wire, toServerError(error))
  }
}

/** Writes an error in a vendor's format. */
export function errorReply(wire: WireServer, error: ServerError): WireReply {
  const { status, body } = wire.encodeError(error)
  const headers: Record<string, string> = { 'content-type': 'application/json' }
  const wait = error.retryAfterMs
  if (wait !== undefined) headers['retry-after'] = String(Math.ceil(wait / 1000))
  return { status, headers, body: JSON.stringify(body) }
}

/**
 * Converts an error for the client: a `UPPError` with its details, any other error to a general message.
 */
export function asServerError(error: unknown): ServerError {
  if (!isUPPError(error)) return { code: 'PROVIDER_ERROR', message: 'The request failed.' }
  const { code, message, statusCode, retryAfterMs } = error
  return {
    code,
    message,
    statusCode: statusCode !== undefined && statusCode >= 400 ? statusCode : undefined,
    retryAfterMs,
  }
}

async function whole({ wire, context, events }: WireAnswer): Promise<WireReply> {
  const all: StreamEvent[] = []
  for await (const batch of events) for (const event of batch) all.push(event)
  const body: JsonObject = wire.encodeResponse(all, context)
  const text = JSON.stringify(body)
  // Without `message_stop` the answer is incomplete. The client must notice that, so only half of the JSON is
  // sent, as by a server that broke down.
  const isWhole = all.at(-1)?.type === 'message_stop'
  return {
    status: 200,
    headers: { 'content-type': 'application/json' },
    body: isWhole ? text : text.slice(0, text.length >> 1),
  }
}

async function streamed(answer: WireAnswer): Promise<WireReply> {
  const { wire, events, pingMs = DEFAULT_PING_MS } = answer
  const batches = new SilenceReader(events[Symbol.asyncIterator](), pingMs)
  const batchesBefore: (readonly StreamEvent[])[] = []
  let isSilent = false
  try {
    for (;;) {
      const step = await batches.next()
      isSilent = step === 'silent'
      if (step === 'silent' || step.done) break
      batchesBefore.push(step.value)
      if (step.value.some(({ type }) => type !== 'message_start')) break
    }
  } catch (error) {
    await batches.close()
    throw error
  }
  return {
    status: 200,
    headers: { 'content-type': streamTypes[wire.name], 'cache-control': 'no-cache' },
    body: encode(answer, { held: batchesBefore, isSilent, batches }),
  }
}

const sse = 'text/event-stream; charset=utf-8'

const streamTypes: Readonly<Record<WireServer['name'], string>> = {
  'openai-chat': sse,
  'openai-responses': sse,
  'anthropic-messages': sse,
  'google-generate': sse,
  'google-interactions': sse,
  'bedrock-converse': 'application/vnd.amazon.eventstream',
  'ollama-chat': 'application/x-ndjson',
}

/** What a stream has yielded before its response began. */
interface OpenedAnswer {
  readonly held: readonly (readonly StreamEvent[])[]
  readonly isSilent: boolean
  readonly batches: SilenceReader<readonly StreamEvent[]>
}

async function* encode(
  { wire, context, toServerError = asServerError }: WireAnswer,
  { held: batchesBefore, isSilent, batches }: OpenedAnswer,
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
    for (const batch of batchesBefore) yield encodeBatch(batch)
    if (isSilent) yield encoder.ping()
    for (;;) {
      const step = await batches.next()
      if (step === 'silent') yield encoder.ping()
      else if (step.done) break
      else yield encodeBatch(step.value)
    }
    // If the model's stream broke off, the client's stream must end without its terminal event, too.
    if (last?.type === 'message_stop') yield encoder.end()
  } catch (error) {
    yield encoder.fail(toServerError(error))
  } finally {
    await batches.close()
  }
}

/** Makes an error that the gateway itself reports. */
export function gatewayError(
  message: string,
  code: keyof typeof ErrorCode,
  options: { statusCode?: number; retryAfterMs?: number; cause?: unknown } = {},
): UPPError {
  return new UPPError(message, {
    code: ErrorCode[code],
    provider: 'gateway',
    modality: 'llm',
    ...options,
  })
}

/**
 * Converts an error for the client. If the vendor rejected the gateway's own key, the client is only
 * told that the model is unavailable.
 */
export function toClientError(error: unknown): ServerError {
  const clientError = asServerError(error)
  const isOwn = isUPPError(error) && error.provider === 'gateway'
  if (clientError.code !== ErrorCode.AuthenticationFailed || isOwn) return clientError
  return {
    code: ErrorCode.ProviderError,
    statusCode: 502,
    message: 'The gateway has no access to this model.',
  }
}
