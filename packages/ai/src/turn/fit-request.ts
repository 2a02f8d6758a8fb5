import type { DocumentBlock, UserContent } from '../contract/content.ts'
import { type Message, UserMessage } from '../contract/message.ts'
import type { BoundLLMModel, LLMCapabilities, LLMRequest } from '../contract/provider.ts'
import type { Warning } from '../contract/turn.ts'
import { checkRequest, inputStart, mediaCapability } from './request.ts'

/** A request as one model can take it. */
export interface FittedRequest {
  /** The same object if nothing had to change. */
  readonly request: LLMRequest
  /** One warning for each block of the history that the model cannot take. */
  readonly warnings: readonly Warning[]
}

/**
 * Checks a request against what the model can do, and replaces the media of the history that it cannot take by a
 * text that names them, so that a conversation can move to another vendor. Throws INVALID_REQUEST if the model
 * cannot take what is new: the user's messages since the last finished answer.
 */
export function fitRequest(
  request: LLMRequest,
  model: BoundLLMModel,
  streaming: boolean,
): FittedRequest {
  checkRequest(request, model, streaming)
  const { messages } = request
  const end = inputStart(messages)
  let fitted: Message[] | undefined
  const warnings: Warning[] = []
  for (let index = 0; index < end; index++) {
    const message = messages[index]!
    if (message.type !== 'user' || isText(message)) continue
    const blocks = message.content.filter((block) => !canTake(block, model.capabilities))
    if (blocks.length === 0) continue
    fitted ??= [...messages]
    fitted[index] = withoutMedia(message, model.capabilities)
    for (const block of blocks)
      warnings.push({
        code: 'unsupported_block',
        message: `${model.provider} cannot take the ${block.type} of an earlier message (${mimeTypeOf(block)}); ${textOfDocument(block) === undefined ? 'a placeholder' : 'its text'} was sent.`,
      })
  }
  return fitted ? { request: { ...request, messages: fitted }, warnings } : { request, warnings }
}

/** Whether a message has nothing but text, like most: a long history is looked through with each request. */
function isText({ content }: UserMessage): boolean {
  for (let index = 0; index < content.length; index++)
    if (content[index]!.type !== 'text') return false
  return true
}

function canTake(block: UserContent, capabilities: LLMCapabilities): boolean {
  const needed = mediaCapability(block)
  return needed === undefined || capabilities[needed]
}

/**
 * The messages without media, by message and by the media left out. A message must stay the same object from
 * request to request, because encoded messages are cached by identity.
 */
const copies = new WeakMap<UserMessage, Map<string, UserMessage>>()

function withoutMedia(message: UserMessage, capabilities: LLMCapabilities): UserMessage {
  const key = media.filter((name) => capabilities[name]).join()
  const known = copies.get(message) ?? new Map<string, UserMessage>()
  copies.set(message, known)
  const copy = known.get(key)
  if (copy) return copy
  const { id, timestamp, metadata } = message
  const content = message.content.map((block) =>
    canTake(block, capabilities) ? block : placeholder(block),
  )
  const made = new UserMessage(content, { id, timestamp, metadata })
  known.set(key, made)
  return made
}

const media = ['imageInput', 'documentInput', 'videoInput', 'audioInput'] as const

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
