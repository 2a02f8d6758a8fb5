import { isPlainObject, type JsonObject } from '@skein/base'
import {
  type AssistantContent,
  fromBytesJson,
  type ProviderMetadata,
  toBytesJson,
  type UserContent,
} from './content.ts'
import { ErrorCode, UPPError } from './error.ts'
import {
  AssistantMessage,
  type Message,
  type MessageOptions,
  type MessageType,
  ToolResultMessage,
  UserMessage,
} from './message.ts'
import type { ToolCall, ToolResult } from './tool.ts'

/** A message as JSON (UPP 1.2 §8.4). Bytes are base64, the timestamp is ISO 8601. */
export interface MessageJSON {
  readonly id: string
  readonly type: MessageType
  readonly content: readonly unknown[]
  readonly toolCalls?: readonly ToolCall[]
  readonly results?: readonly ToolResult[]
  readonly metadata?: ProviderMetadata
  readonly timestamp: string
}

/** Lossless for everything JSON can say and for bytes at any depth. */
export function messageToJSON(message: Message): MessageJSON {
  return toBytesJson({
    id: message.id,
    type: message.type,
    content: message.type === 'tool_result' ? [] : message.content,
    ...(message.type === 'assistant' && message.toolCalls && { toolCalls: message.toolCalls }),
    ...(message.type === 'tool_result' && { results: message.results }),
    ...(message.metadata && { metadata: message.metadata }),
    timestamp: toIso(message.timestamp),
  }) as MessageJSON // the shape is written out just above
}

/** Takes untrusted JSON; what it cannot be is refused with the field's name. */
export function messageFromJSON(json: unknown): Message {
  if (!isPlainObject(json)) throw invalid('a message', 'is not an object')
  const value = fromBytesJson(json) as Record<string, unknown> // mapping keeps an object an object
  const options = optionsOf(value)
  // Earlier drafts of the protocol called the field `role`.
  switch (value['type'] ?? value['role']) {
    case 'user':
      return new UserMessage(blocks(value) as UserContent[], options)
    case 'assistant':
      return new AssistantMessage(blocks(value) as AssistantContent[], calls(value), options)
    case 'tool_result':
    case 'tool':
      return new ToolResultMessage(results(value), options)
    default:
      throw invalid('type', `is ${JSON.stringify(value['type'])}`)
  }
}

function toIso(timestamp: Date | string): string {
  // Messages that came from JSON by hand may still hold the text.
  return typeof timestamp === 'string' ? timestamp : timestamp.toISOString()
}

function optionsOf(value: Record<string, unknown>): MessageOptions {
  const { id, timestamp, metadata } = value
  if (typeof id !== 'string' || id === '') throw invalid('id', 'is not a non-empty string')
  const date = new Date(typeof timestamp === 'string' ? timestamp : Number.NaN)
  if (Number.isNaN(date.getTime())) throw invalid('timestamp', 'is not an ISO 8601 time')
  if (metadata === undefined) return { id, timestamp: date }
  if (!isPlainObject(metadata)) throw invalid('metadata', 'is not an object')
  return { id, timestamp: date, metadata: metadata as Record<string, JsonObject> }
}

/** The constructors check each block's type; here it only has to be a list. */
function blocks(value: Record<string, unknown>): unknown[] {
  return list(value['content'] ?? [], 'content')
}

function calls(value: Record<string, unknown>): ToolCall[] | undefined {
  if (value['toolCalls'] === undefined) return undefined
  return list(value['toolCalls'], 'toolCalls').map((call, index) => {
    const at = `toolCalls[${index}]`
    if (!isPlainObject(call)) throw invalid(at, 'is not an object')
    if (typeof call['toolCallId'] !== 'string') throw invalid(`${at}.toolCallId`, 'is not a string')
    if (typeof call['toolName'] !== 'string') throw invalid(`${at}.toolName`, 'is not a string')
    if (!isPlainObject(call['arguments'])) throw invalid(`${at}.arguments`, 'is not an object')
    return call as unknown as ToolCall // its required fields were checked just above
  })
}

function results(value: Record<string, unknown>): ToolResult[] {
  return list(value['results'], 'results').map((result, index) => {
    const at = `results[${index}]`
    if (!isPlainObject(result)) throw invalid(at, 'is not an object')
    if (typeof result['toolCallId'] !== 'string') {
      throw invalid(`${at}.toolCallId`, 'is not a string')
    }
    return result as unknown as ToolResult // its required field was checked just above
  })
}

function list(value: unknown, field: string): unknown[] {
  if (!Array.isArray(value)) throw invalid(field, 'is not a list')
  return value
}

function invalid(field: string, problem: string): UPPError {
  return new UPPError(`Message JSON: ${field} ${problem}.`, {
    code: ErrorCode.InvalidRequest,
    provider: 'skein',
    modality: 'llm',
  })
}
