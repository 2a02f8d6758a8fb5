import {
  type Clock,
  freezeTree,
  FrozenData,
  type IdSource,
  systemClock,
  uuidV4,
  wellFormed,
} from '@skein/base'
import type {
  AssistantContent,
  AudioBlock,
  ContentBlock,
  DocumentBlock,
  ImageBlock,
  ProviderMetadata,
  TextBlock,
  UserContent,
  VideoBlock,
} from './content.ts'
import { bytesInJson, toBytesJson } from './bytes-json.ts'
import { resultText } from './result-text.ts'
import { invalidValue } from './error.ts'
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
  /** The sources of missing ids and times; replace them for deterministic runs. */
  readonly ids?: IdSource
  readonly clock?: Clock
}

/**
 * One message of a conversation. It is deeply frozen and shared by reference, never copied. Optional members
 * are declared but not initialised, so that they exist only when they have a value.
 */
abstract class BaseMessage extends FrozenData {
  abstract readonly type: MessageType
  readonly id: string
  readonly timestamp: Date
  declare readonly metadata?: ProviderMetadata

  constructor({ id, timestamp, metadata, ids = uuidV4, clock = systemClock }: MessageOptions) {
    super()
    this.id = id ?? ids()
    this.timestamp = timestamp ?? new Date(clock.now())
    if (metadata) this.metadata = freezeTree(metadata)
  }

  protected abstract blocks(): readonly ContentBlock[]

  /**
   * Returns JSON that also contains the bytes. `messageFromJSON`, and
   * every call that accepts a history, can read it.
   */
  toJSON(): unknown {
    return toBytesJson({ ...this })
  }

  /** The text blocks joined without a separator, so that the text equals the streamed text. */
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

/** A message of the user, made from a string or from content blocks. */
export class UserMessage extends BaseMessage {
  readonly type = 'user'
  readonly content: readonly UserContent[]

  constructor(content: string | readonly UserContent[], options: MessageOptions = {}) {
    super(options)
    this.content = freezeTree(toBlocks(content, userBlocks, 'a UserMessage'))
    Object.freeze(this)
  }

  protected blocks(): readonly ContentBlock[] {
    return this.content
  }
}

/** An answer of the model, with the tool calls it requests. */
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
    this.content = freezeTree(toBlocks(content, assistantBlocks, 'an AssistantMessage'))
    if (toolCalls)
      this.toolCalls = freezeTree(listOf(toolCalls, 'the calls of an AssistantMessage'))
    Object.freeze(this)
  }

  get hasToolCalls(): boolean {
    return this.toolCalls !== undefined && this.toolCalls.length > 0
  }

  protected blocks(): readonly ContentBlock[] {
    return this.content
  }
}

/** The results of the tool calls that the previous message requested. */
export class ToolResultMessage extends BaseMessage {
  readonly type = 'tool_result'
  readonly results: readonly ToolResult[]

  constructor(results: readonly ToolResult[], options: MessageOptions = {}) {
    super(options)
    this.results = freezeTree(listOf(results, 'a ToolResultMessage'))
    Object.freeze(this)
  }

  /** The results as the model reads them, one line or more each: texts, and all other data as JSON. */
  override get text(): string {
    return this.results
      .map(({ result }) => {
        const blocks = contentOf(result)
        if (blocks.length === 0) return resultText(result)
        return blocks.map((block) => (block.type === 'text' ? block.text : '')).join('')
      })
      .join('\n')
  }

  /**
   * Returns the results that are content blocks themselves (an image,
   * a document), for accessors such as `images`.
   */
  protected blocks(): readonly ContentBlock[] {
    return this.results.flatMap(({ result }) => contentOf(result))
  }
}

/** One message of a conversation (UPP §6.1). */
export type Message = UserMessage | AssistantMessage | ToolResultMessage

/**
 * True for a user message. Checks only `type`, so that parsed JSON and messages of another copy of this
 * package are accepted too.
 */
export function isUserMessage(message: unknown): message is UserMessage {
  return typeOf(message) === 'user'
}

/** True for an assistant message. Checks only `type`, like `isUserMessage`. */
export function isAssistantMessage(message: unknown): message is AssistantMessage {
  return typeOf(message) === 'assistant'
}

/** True for a tool result message. Checks only `type`, like `isUserMessage`. */
export function isToolResultMessage(message: unknown): message is ToolResultMessage {
  return typeOf(message) === 'tool_result'
}

/** True for a message of any type, also for one that is parsed JSON. */
export function isMessage(value: unknown): value is Message {
  const type = typeOf(value)
  return type === 'user' || type === 'assistant' || type === 'tool_result'
}

function typeOf(value: unknown): unknown {
  return typeof value === 'object' && value !== null && 'type' in value ? value.type : undefined
}

// The allowed types of blocks are keys of records, so that a new type does not compile until it is added here.
const userBlocks: Readonly<Record<UserContent['type'], true>> = {
  text: true,
  image: true,
  document: true,
  audio: true,
  video: true,
  binary: true,
}
const assistantBlocks: Readonly<Record<AssistantContent['type'], true>> = {
  text: true,
  reasoning: true,
  image: true,
  audio: true,
  video: true,
  native: true,
}

/** Returns a copy of the list of blocks; throws for a block that this type of message may not contain. */
function toBlocks<Block extends ContentBlock>(
  content: string | readonly Block[],
  allowed: Readonly<Record<string, true>>,
  where: string,
): readonly (Block | TextBlock)[] {
  if (typeof content === 'string') return [{ type: 'text', text: wellFormed(content) }]
  const blocks = listOf(content, where)
  blocks.forEach((block, index) => {
    const type = typeOf(block)
    if (typeof type === 'string' && Object.hasOwn(allowed, type)) return
    const hint = `Allowed there: ${Object.keys(allowed).join(', ')}.`
    throw invalidValue(`Block ${index} of ${where} has the type ${JSON.stringify(type)}.`, hint)
  })
  return blocks.map((block) => {
    // Half of a surrogate pair, which a cut text ends with, would make the conversation unusable (UPP §15.1).
    if (block.type !== 'text') return block
    const text = typeof block.text === 'string' ? wellFormed(block.text) : block.text
    return text === block.text ? block : { ...block, text }
  })
}

function listOf<T>(given: readonly T[], where: string): T[] {
  if (Array.isArray(given)) return [...(given as readonly T[])]
  throw invalidValue(`The content of ${where} is ${given === null ? 'null' : typeof given}.`)
}

const resultBlocks = new Set(['text', 'image', 'document', 'audio', 'video'])

/**
 * Returns the content blocks in a tool's result (one block, or a list
 * of blocks); an empty list if it has none.
 */
export function contentOf(result: unknown): readonly UserContent[] {
  const list: readonly unknown[] = Array.isArray(result) ? result : [result]
  const isBlocks = list.length > 0 && list.every((item) => resultBlocks.has(typeOf(item) as string))
  if (!isBlocks) return []
  // A result is JSON, so audio and video in it store their bytes as `{ $bytes }`; they are decoded here.
  return (list as UserContent[]).map((block) => {
    if (block.type !== 'audio' && block.type !== 'video') return block
    const data = bytesInJson(block.data)
    return data ? { ...block, data } : block
  })
}
