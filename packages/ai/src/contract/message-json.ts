import {
  type Clock,
  type IdSource,
  isPlainObject,
  type JsonObject,
  type MessageJSON,
} from '@skein/base'
import type { AssistantContent, UserContent } from './content.ts'
import { fromBytesJson, toBytesJson } from './bytes-json.ts'
import { invalidValue, type UPPError } from './error.ts'
import {
  AssistantMessage,
  type Message,
  type MessageOptions,
  ToolResultMessage,
  UserMessage,
} from './message.ts'
import type { ToolCall, ToolResult } from './tool.ts'

/** Converts a message to JSON without loss, including bytes at any depth. */
export function messageToJSON(given: Message): MessageJSON {
  // A message that was parsed from JSON without `messageFromJSON` has a text as its timestamp, and `{ $bytes }`
  // instead of bytes, which `toBytesJson` would escape.
  const message = typeof given.timestamp === 'string' ? (decodeBytes(given) as Message) : given
  return toBytesJson({
    id: message.id,
    type: message.type,
    content: message.type === 'tool_result' ? [] : message.content,
    ...(message.type === 'assistant' && message.toolCalls && { toolCalls: message.toolCalls }),
    ...(message.type === 'tool_result' && { results: message.results }),
    ...(message.metadata && { metadata: message.metadata }),
    timestamp: dateOf(message.timestamp, 'Message JSON: timestamp').toISOString(),
  }) as MessageJSON // the literal above has exactly this shape
}

/** Reads a time, given as a date or as text. */
export function dateOf(time: unknown, name: string): Date {
  const date = new Date(time instanceof Date || typeof time === 'string' ? time : Number.NaN)
  if (Number.isNaN(date.getTime())) throw invalidValue(`${name} is not an ISO time.`)
  return date
}

/**
 * Returns a message instance unchanged, and makes one of parsed JSON. A missing id or timestamp gets its default.
 */
export function asMessage(
  value: Message,
  { ids, clock }: { readonly ids: IdSource; readonly clock: Clock },
): Message {
  if ('text' in value) return value // an instance, of this or another copy of the package
  const { id = ids(), timestamp = new Date(clock.now()), ...rest } = value as Partial<Message>
  return messageFromJSON({ ...rest, id, timestamp })
}

/** Reads a message from untrusted JSON; throws an error that names the invalid field. */
export function messageFromJSON(json: unknown): Message {
  if (!isPlainObject(json)) throw invalidField('a message', 'is not an object')
  // An object is decoded to an object.
  const value = decodeBytes(json) as Record<string, unknown>
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
      throw invalidField('type', `is ${JSON.stringify(value['type'])}`)
  }
}

function decodeBytes(json: unknown): unknown {
  try {
    return fromBytesJson(json)
  } catch (cause) {
    throw invalidValue('Message JSON: $bytes is not base64.', undefined, cause)
  }
}

function optionsOf(value: Record<string, unknown>): MessageOptions {
  const { id, timestamp, metadata } = value
  if (typeof id !== 'string' || id === '') throw invalidField('id', 'is not a non-empty string')
  const date = dateOf(timestamp, 'Message JSON: timestamp')
  if (metadata === undefined) return { id, timestamp: date }
  if (!isPlainObject(metadata)) throw invalidField('metadata', 'is not an object')
  return { id, timestamp: date, metadata: metadata as Record<string, JsonObject> }
}

/** Checks that each block has its data. The message constructors check which blocks they may contain. */
function blocks(value: Record<string, unknown>): unknown[] {
  return list(value['content'] ?? [], 'content').map((block, index) => {
    const at = `content[${index}]`
    // An instance of `Image` is a block too, so the object need not be plain.
    if (typeof block !== 'object' || block === null) throw invalidField(at, 'is not an object')
    const { type, text, data } = block as Record<string, unknown>
    const isText = type === 'text' || type === 'reasoning'
    if (isText && typeof text !== 'string') throw invalidField(`${at}.text`, 'is not a string')
    if (type === 'image' || type === 'document') checkSource(block as Record<string, unknown>, at)
    const isBytes = type === 'audio' || type === 'video' || type === 'binary'
    if (isBytes && !ArrayBuffer.isView(data)) throw invalidField(`${at}.data`, 'is not bytes')
    return block
  })
}

/** The field that holds the data of each kind of source, and whether it is bytes. Other kinds are left to the request. */
const sourceFields: Readonly<Record<string, readonly [field: 'data' | 'url', isBytes: boolean]>> = {
  base64: ['data', false],
  text: ['data', false],
  url: ['url', false],
  bytes: ['data', true],
}

function checkSource({ source, mimeType }: Record<string, unknown>, at: string): void {
  if (!isPlainObject(source)) throw invalidField(`${at}.source`, 'is not an object')
  if (typeof mimeType !== 'string') throw invalidField(`${at}.mimeType`, 'is not a string')
  const { type } = source
  if (typeof type !== 'string') throw invalidField(`${at}.source.type`, 'is not a string')
  if (!Object.hasOwn(sourceFields, type)) return
  const [field, isBytes] = sourceFields[type]!
  const isRight = isBytes ? ArrayBuffer.isView(source[field]) : typeof source[field] === 'string'
  if (!isRight)
    throw invalidField(`${at}.source.${field}`, isBytes ? 'is not bytes' : 'is not a string')
}

function calls(value: Record<string, unknown>): ToolCall[] | undefined {
  if (value['toolCalls'] === undefined) return undefined
  return list(value['toolCalls'], 'toolCalls').map((call, index) => {
    const at = `toolCalls[${index}]`
    if (!isPlainObject(call)) throw invalidField(at, 'is not an object')
    if (typeof call['toolCallId'] !== 'string')
      throw invalidField(`${at}.toolCallId`, 'is not a string')
    if (typeof call['toolName'] !== 'string')
      throw invalidField(`${at}.toolName`, 'is not a string')
    if (!isPlainObject(call['arguments'])) throw invalidField(`${at}.arguments`, 'is not an object')
    list(call['after'] ?? [], `${at}.after`) // ids that name no call are ignored when the calls run
    return call as unknown as ToolCall // its required fields were checked just above
  })
}

function results(value: Record<string, unknown>): ToolResult[] {
  return list(value['results'], 'results').map((result, index) => {
    const at = `results[${index}]`
    if (!isPlainObject(result)) throw invalidField(at, 'is not an object')
    if (typeof result['toolCallId'] !== 'string') {
      throw invalidField(`${at}.toolCallId`, 'is not a string')
    }
    return result as unknown as ToolResult // its required field was checked just above
  })
}

function list(value: unknown, field: string): unknown[] {
  if (!Array.isArray(value)) throw invalidField(field, 'is not a list')
  return value
}

function invalidField(field: string, problem: string): UPPError {
  return invalidValue(`Message JSON: ${field} ${problem}.`)
}
