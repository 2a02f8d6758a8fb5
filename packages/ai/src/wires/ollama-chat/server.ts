import type { JsonObject } from '@skein/base'
import { ErrorCode } from '../../error.ts'
import { readRequest } from '../wire-error.ts'
import type { EncodeContext, ServerError, WireEncoder, WireServer } from '../wire.ts'
import { decodeRequest } from './server-request.ts'
import { API } from './types.ts'
import type { MessageStopEvent, StreamEvent } from '../../event.ts'
import { parseArguments } from '../../parse-arguments.ts'
import { BlockCollector, collectBlocks, type CollectedBlock } from '../collect-blocks.ts'
import { nativeOf } from '../metadata.ts'
import { objectOf, without } from '../read-json.ts'
import { fromUsage } from './stream.ts'

/** `/api/chat` served: one message per answer. */
export const ollamaChatServer: WireServer = {
  name: API,
  decodeRequest: (body) => readRequest('ollama', () => decodeRequest(body)),
  encodeResponse,
  createEncoder: (context) => new OllamaEncoder(context),
  encodeError,
}

const statuses: Readonly<Record<ErrorCode, number>> = {
  [ErrorCode.AuthenticationFailed]: 401,
  [ErrorCode.RateLimited]: 429,
  [ErrorCode.QuotaExceeded]: 402,
  [ErrorCode.ContextLengthExceeded]: 400,
  [ErrorCode.ModelNotFound]: 404,
  [ErrorCode.InvalidRequest]: 400,
  [ErrorCode.ContentFiltered]: 400,
  [ErrorCode.InvalidResponse]: 502,
  [ErrorCode.ProviderError]: 500,
  [ErrorCode.NetworkError]: 502,
  [ErrorCode.Timeout]: 504,
  [ErrorCode.Cancelled]: 499,
}

/** The format has words only. */
function encodeError({ code, message, statusCode }: ServerError): {
  readonly status: number
  readonly body: JsonObject
} {
  return { status: statusCode ?? statuses[code], body: { error: message } }
}

/** A whole answer. */
function encodeResponse(events: readonly StreamEvent[], context: EncodeContext): JsonObject {
  const { blocks, stop } = collectBlocks(events)
  const textOf = (kinds: readonly string[]): string =>
    blocks.map(({ kind, text }) => (kinds.includes(kind) ? text : '')).join('')
  const thinking = textOf(['reasoning'])
  const calls = blocks.filter(({ kind }) => kind === 'tool_call').map(encodeCall)
  const message = {
    role: 'assistant',
    content: textOf(['text', 'object']),
    ...(thinking !== '' && { thinking }),
    ...(calls.length > 0 && { tool_calls: calls }),
  }
  return { ...line(context, message), ...stopFields(stop) }
}

function line({ request, createdAt }: EncodeContext, message: JsonObject): JsonObject {
  const created_at = new Date(createdAt).toISOString()
  return { model: request.modelId, created_at, message, done: false }
}

function stopFields(stop: MessageStopEvent['delta'] | undefined): JsonObject {
  if (!stop) return { done: true }
  const isCut = stop.stopReason === 'max_tokens' || stop.stopReason === 'context_window'
  return { done: true, done_reason: isCut ? 'length' : 'stop', ...fromUsage(stop.usage) }
}

function encodeCall({ start, text, metadata }: CollectedBlock): JsonObject {
  const native = nativeOf(metadata, 'ollama', API) ?? {}
  return {
    ...without(native, new Set(['function'])),
    function: {
      ...objectOf(native['function']),
      name: start.toolName ?? '',
      arguments: parseArguments(text).arguments ?? {},
    },
  }
}

/** Writes the events of one message as lines. A call is sent whole, when it ends. */
class OllamaEncoder implements WireEncoder {
  readonly #context: EncodeContext
  readonly #collector = new BlockCollector()

  constructor(context: EncodeContext) {
    this.#context = context
  }

  push(event: StreamEvent): string {
    switch (event.type) {
      case 'text_delta':
      case 'object_delta':
        return this.#line({ content: event.delta.text })
      case 'reasoning_delta':
        return this.#line({ content: '', thinking: event.delta.text })
      case 'message_stop':
        return this.#line({ content: '' }, stopFields(event.delta))
      default: {
        const block = this.#collector.push(event)
        const isCallEnd = event.type === 'content_block_stop' && block?.kind === 'tool_call'
        return isCallEnd ? this.#line({ content: '', tool_calls: [encodeCall(block)] }) : ''
      }
    }
  }

  end(): string {
    return ''
  }

  fail({ message }: ServerError): string {
    return `${JSON.stringify({ error: message })}\n`
  }

  #line(message: JsonObject, fields: JsonObject = {}): string {
    const whole = line(this.#context, { role: 'assistant', ...message })
    return `${JSON.stringify({ ...whole, ...fields })}\n`
  }
}
