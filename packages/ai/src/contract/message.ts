import { type Clock, deepFreeze, type IdSource, systemClock, uuidV4 } from '@skein/base'
import {
  type AssistantContent,
  type AudioBlock,
  bytesInJson,
  type ContentBlock,
  type DocumentBlock,
  type ImageBlock,
  type ProviderMetadata,
  type TextBlock,
  toBytesJson,
  type UserContent,
  type VideoBlock,
} from './content.ts'
import { invalidRequest, type UPPError } from './error.ts'
import type { ToolCall, ToolResult } from './tool.ts'

/** The types of messages by name. */
export const MessageRole = {
  User: 'user',
  Assistant: 'assistant',
  ToolResult: 'tool_result',
} as const
/** The type of a message. */
export type MessageRole = (typeof MessageRole)[keyof typeof MessageRole]
/** The same as `MessageRole`, under the name of UPP §6.1. */
export type MessageType = MessageRole

/** Options of a message. Defaults: a new id, the time now. */
export interface MessageOptions {
  readonly id?: string
  readonly timestamp?: Date
  readonly metadata?: ProviderMetadata
  /** Where missing ids and times come from; for deterministic runs. */
  readonly ids?: IdSource
  readonly clock?: Clock
}

/**
 * One message of a conversation. Frozen, with all it holds; shared by reference, never copied.
 * Optional members are declared, not defined, so that they exist only where they have a value.
 */
abstract class BaseMessage {
  abstract readonly type: MessageType
  readonly id: string
  readonly timestamp: Date
  declare readonly metadata?: ProviderMetadata

  constructor({ id, timestamp, metadata, ids = uuidV4, clock = systemClock }: MessageOptions) {
    this.id = id ?? ids()
    this.timestamp = timestamp ?? new Date(clock.now())
    if (metadata) this.metadata = metadata
  }

  protected abstract blocks(): readonly ContentBlock[]

  /** Bytes survive; `messageFromJSON`, and every call that takes a history, read it again. */
  toJSON(): unknown {
    return toBytesJson({ ...this })
  }

  /** Text blocks joined without a separator, so that it equals the streamed text. */
  get text(): string {
    let text = ''
    for (const block of this.blocks()) if (block.type === 'text') text += block.text
    return text
  }

  get images(): readonly ImageBlock[] {
    return this.blocks().filter((block) => block.type === 'image')
  }

  get documents(): readonly DocumentBlock[] {
    return this.blocks().filter((block) => block.type === 'document')
  }

  get audio(): readonly AudioBlock[] {
    return this.blocks().filter((block) => block.type === 'audio')
  }

  get video(): readonly VideoBlock[] {
    return this.blocks().filter((block) => block.type === 'video')
  }
}

/** What the user says: a string, or blocks of any kind. */
export class UserMessage extends BaseMessage {
  readonly type = 'user'
  readonly content: readonly UserContent[]

  constructor(content: string | readonly UserContent[], options: MessageOptions = {}) {
    super(options)
    this.content = toBlocks(content, userBlocks, 'a UserMessage')
    deepFreeze(this)
  }

  protected blocks(): readonly ContentBlock[] {
    return this.content
  }
}

/** What the model answered, and which tools it wants to be run. */
export class AssistantMessage extends BaseMessage {
  readonly type = 'assistant'
  readonly content: readonly AssistantContent[]
  declare readonly toolCalls?: readonly ToolCall[]

  constructor(
    content: string | readonly AssistantContent[],
    toolCalls?: readonly ToolCall[],
    options: MessageOptions = {},
  ) {
    super(options)
    this.content = toBlocks(content, assistantBlocks, 'an AssistantMessage')
    if (toolCalls) this.toolCalls = listOf(toolCalls, 'the calls of an AssistantMessage')
    deepFreeze(this)
  }

  get hasToolCalls(): boolean {
    return this.toolCalls !== undefined && this.toolCalls.length > 0
  }

  protected blocks(): readonly ContentBlock[] {
    return this.content
  }
}

/** What the tools gave that the message before asked for. */
export class ToolResultMessage extends BaseMessage {
  readonly type = 'tool_result'
  readonly results: readonly ToolResult[]

  constructor(results: readonly ToolResult[], options: MessageOptions = {}) {
    super(options)
    this.results = listOf(results, 'a ToolResultMessage')
    deepFreeze(this)
  }

  /** Results that are content blocks themselves (an image, a document) show in the accessors. */
  protected blocks(): readonly ContentBlock[] {
    return this.results.flatMap(({ result }) => contentOf(result))
  }
}

/** One message of a conversation (UPP §6.1). */
export type Message = UserMessage | AssistantMessage | ToolResultMessage

/** By `type`, so that it also holds for parsed JSON and for another copy of this package. */
export function isUserMessage(message: unknown): message is UserMessage {
  return typeOf(message) === 'user'
}

/** By `type`, as `isUserMessage`. */
export function isAssistantMessage(message: unknown): message is AssistantMessage {
  return typeOf(message) === 'assistant'
}

/** By `type`, as `isUserMessage`. */
export function isToolResultMessage(message: unknown): message is ToolResultMessage {
  return typeOf(message) === 'tool_result'
}

/** True for a message of any type, also as parsed JSON. */
export function isMessage(value: unknown): value is Message {
  const type = typeOf(value)
  return type === 'user' || type === 'assistant' || type === 'tool_result'
}

function typeOf(value: unknown): unknown {
  return typeof value === 'object' && value !== null && 'type' in value ? value.type : undefined
}

const userBlocks = new Set(['text', 'image', 'document', 'audio', 'video', 'binary'])
const assistantBlocks = new Set(['text', 'reasoning', 'image', 'audio', 'video', 'native'])

/** A list of its own, of blocks that may stand there. */
function toBlocks<Block extends ContentBlock>(
  content: string | readonly Block[],
  allowed: Set<string>,
  where: string,
): readonly (Block | TextBlock)[] {
  if (typeof content === 'string') return [{ type: 'text', text: content }]
  const blocks = listOf(content, where)
  blocks.forEach((block, index) => {
    const type = typeOf(block)
    if (typeof type === 'string' && allowed.has(type)) return
    const hint = `Allowed there: ${[...allowed].join(', ')}.`
    throw refused(`Block ${index} of ${where} has the type ${JSON.stringify(type)}.`, hint)
  })
  return blocks
}

function listOf<T>(given: readonly T[], where: string): T[] {
  if (Array.isArray(given)) return [...(given as readonly T[])]
  throw refused(`The content of ${where} is ${given === null ? 'null' : typeof given}.`)
}

function refused(message: string, hint?: string): UPPError {
  return invalidRequest(message, { provider: 'skein', modality: 'llm' }, hint)
}

const resultBlocks = new Set(['text', 'image', 'document', 'audio', 'video'])

/** The content blocks a tool returned: one block or a list of blocks; anything else has none. */
export function contentOf(result: unknown): readonly UserContent[] {
  const list: readonly unknown[] = Array.isArray(result) ? result : [result]
  const isBlocks = list.length > 0 && list.every((item) => resultBlocks.has(typeOf(item) as string))
  if (!isBlocks) return []
  // A result is JSON, so sound and film in it hold their bytes as `{ $bytes }`; blocks hold bytes.
  return (list as UserContent[]).map((block) => {
    if (block.type !== 'audio' && block.type !== 'video') return block
    const data = bytesInJson(block.data)
    return data ? { ...block, data } : block
  })
}
