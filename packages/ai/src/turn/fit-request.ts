import type { ContentBlock, DocumentBlock, UserContent } from '../contract/content.ts'
import { contentOf, type Message, ToolResultMessage, UserMessage } from '../contract/message.ts'
import type { BoundLLMModel, LLMRequest } from '../contract/provider.ts'
import type { Warning } from '../contract/turn.ts'
import { checkRequest, inputStart, mediaCapability } from './check-request.ts'

/** A request as one model can take it. */
export interface FittedRequest {
  /** The same object if nothing had to change. */
  readonly request: LLMRequest
  /** One warning for each block that the model cannot take. */
  readonly warnings: readonly Warning[]
}

/**
 * Checks a request against what the model can do, and replaces the blocks of the history that it cannot take by a
 * text that names them, so that a conversation can move to another vendor. The same is done in all results of tools,
 * whose media no person chose. Throws INVALID_REQUEST if the model cannot take what is new: the user's messages since
 * the last finished answer.
 */
export function fitRequest(
  request: LLMRequest,
  model: BoundLLMModel,
  streaming: boolean,
): FittedRequest {
  checkRequest(request, model, streaming)
  const { messages } = request
  const end = inputStart(messages)
  let newMessages: Message[] | undefined
  const warnings: Warning[] = []
  for (let index = 0; index < messages.length; index++) {
    const message = messages[index]!
    if (message.type === 'assistant') continue
    if (message.type === 'user' && (index >= end || isText(message))) continue
    const own = message.type === 'user' ? refusedOf(message, model) : refusedResults(message, model)
    if (own.length === 0) continue
    newMessages ??= [...messages]
    newMessages[index] = replaced(message, own)
    const where = message.type === 'user' ? 'an earlier message' : 'a tool result'
    for (const { block } of own)
      warnings.push({
        code: 'unsupported_block',
        message: `${model.provider} cannot take the ${block.type} of ${where} (${mimeTypeOf(block)}); ${textOfDocument(block) === undefined ? 'a placeholder' : 'its text'} was sent.`,
      })
  }
  return newMessages
    ? { request: { ...request, messages: newMessages }, warnings }
    : { request, warnings }
}

/** Whether a message has nothing but text, like most: a long history is looked through with each request. */
function isText({ content }: UserMessage): boolean {
  for (let index = 0; index < content.length; index++)
    if (content[index]!.type !== 'text') return false
  return true
}

/** A block that a model cannot take, and where it is. */
interface RefusedBlock {
  /** The index of the block; in a tool result `2.1` for block 1 of result 2. */
  readonly at: string
  readonly block: UserContent
}

function refusedOf({ content }: UserMessage, model: BoundLLMModel): readonly RefusedBlock[] {
  return content.flatMap((block, index) => {
    const capability = mediaCapability(block)
    const isRefused = (capability && !model.capabilities[capability]) || model.refuse?.(block)
    return isRefused ? [{ at: String(index), block }] : []
  })
}

/**
 * Returns the pictures and documents of results that the model refuses. What it cannot show at all, such as a film, is
 * replaced where the vendor's format is written.
 */
function refusedResults(
  { results }: ToolResultMessage,
  model: BoundLLMModel,
): readonly RefusedBlock[] {
  let refused: RefusedBlock[] | undefined
  for (let index = 0; index < results.length; index++) {
    const { result } = results[index]!
    if (typeof result !== 'object' || result === null || !model.refuse) continue
    contentOf(result).forEach((block, place) => {
      if (block.type !== 'image' && block.type !== 'document') return
      if (model.refuse!(block)) (refused ??= []).push({ at: `${index}.${place}`, block })
    })
  }
  return refused ?? none
}

const none: readonly RefusedBlock[] = []

/**
 * The messages with placeholders, by message and by the places of the blocks. A message must stay the same object from
 * request to request, because encoded messages are cached by identity.
 */
const copies = new WeakMap<Message, Map<string, Message>>()

function replaced(
  message: UserMessage | ToolResultMessage,
  refused: readonly RefusedBlock[],
): Message {
  const key = refused.map(({ at }) => at).join()
  const variants = copies.get(message) ?? new Map<string, Message>()
  copies.set(message, variants)
  const copy = variants.get(key)
  if (copy) return copy
  const places = new Set(refused.map(({ at }) => at))
  const newCopy = withPlaceholders(message, (at) => places.has(at))
  variants.set(key, newCopy)
  return newCopy
}

function withPlaceholders(
  message: UserMessage | ToolResultMessage,
  isRefused: (at: string) => boolean,
): Message {
  const { id, timestamp, metadata } = message
  const options = { id, timestamp, metadata }
  if (message.type === 'user') {
    const show = (block: UserContent, index: number): UserContent =>
      isRefused(String(index)) ? placeholder(block) : block
    return new UserMessage(message.content.map(show), options)
  }
  const results = message.results.map((result, index) => {
    const blocks = contentOf(result.result)
    const show = (block: ContentBlock, place: number): ContentBlock =>
      isRefused(`${index}.${place}`) ? placeholder(block as UserContent) : block
    return blocks.some((_, place) => isRefused(`${index}.${place}`))
      ? { ...result, result: blocks.map(show) }
      : result
  })
  return new ToolResultMessage(results, options)
}

/** Returns the text sent in place of a block; for a document that was given as text, its text. */
function placeholder(block: UserContent): UserContent {
  const text = textOfDocument(block)
  if (text !== undefined) return { type: 'text', text }
  const title = block.type === 'document' && block.title ? ` ${JSON.stringify(block.title)}` : ''
  return { type: 'text', text: `[${block.type}${title}, ${mimeTypeOf(block)}: not shown]` }
}

function textOfDocument(block: UserContent): string | undefined {
  if (block.type !== 'document' || block.source.type !== 'text') return undefined
  const { title, source }: DocumentBlock = block
  return title ? `${title}\n\n${source.data}` : source.data
}

function mimeTypeOf(block: UserContent): string {
  return block.type === 'text' ? 'text/plain' : block.mimeType
}
