import { messageToJSON, UserMessage, type MessageJSON } from '@skein/ai'
import type { UppMessage } from '@skein/threads/upp'
import { RuntimeError } from '../error.ts'
import type { MessageQueued } from '../event.ts'
import type { KernelState } from '../state.ts'
import type { SendMessage } from '../runtime-api.ts'
import { normalisePath } from '../thread/paths.ts'
import type { ApiContext } from './api-context.ts'
import { checkedMetadata, checkLabel } from './check-input.ts'
import { jsonCopy } from '../thread/values.ts'

/** The event of a message that somebody sends. Its queue id is the message's id, so sending it twice is one. */
export function queuedMessage(context: ApiContext, sent: SendMessage | string): MessageQueued {
  const { role = 'user', isSilent, userId, metadata, ...rest } = toSend(sent)
  const at = context.at()
  const id = rest.messageId ?? context.ids()
  checkLabel(id, 'The id of the message')
  const attachments = (rest.attachments ?? []).map(normalisePath)
  const options = { id, timestamp: new Date(at), maxBytes: context.limits.maxMessageBytes }
  const message = toUpp(contentOf(rest), options)
  return {
    type: 'message_queued',
    at,
    queueId: id,
    role,
    message,
    resumes: true,
    ...(isSilent && { isSilent }),
    ...(userId !== undefined && { userId }),
    ...(attachments.length > 0 && { attachments }),
    ...(metadata && { metadata: checkedMetadata(metadata, 'the message') }),
  }
}

function toSend(sent: SendMessage | string): SendMessage {
  const message = typeof sent === 'string' ? { text: sent } : sent
  if (message.role === undefined || message.role === 'user' || message.role === 'assistant')
    return message
  throw invalid(`A message cannot be sent as ${JSON.stringify(message.role)}.`)
}

type Content = ConstructorParameters<typeof UserMessage>[0]

/** The text first, then the blocks. */
function contentOf({ text, content = [], attachments = [] }: SendMessage): Content {
  const isEmpty = (text === undefined || text.trim() === '') && content.length === 0
  if (isEmpty && attachments.length === 0) throw invalid('The message is empty.')
  if (text === undefined) return content
  if (typeof text !== 'string') throw invalid('The text of the message is not a text.')
  return [{ type: 'text', text }, ...content]
}

function toUpp(
  content: Content,
  { maxBytes, ...options }: { id: string; timestamp: Date; maxBytes: number },
): UppMessage {
  const json = jsonCopy(toJson(content, options), {
    subject: `The message ${options.id}`,
    code: 'INPUT_INVALID',
    maxBytes,
  })
  return json as unknown as UppMessage // the same shape under two names
}

function toJson(content: Content, options: { id: string; timestamp: Date }): MessageJSON {
  try {
    return messageToJSON(new UserMessage(content, options))
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause)
    throw new RuntimeError(`The message cannot be read: ${why}`, { code: 'INPUT_INVALID', cause })
  }
}

/** Refuses a message whose id another message has, or that names files the thread does not have. */
export function checkQueued(
  { queueId, attachments = [] }: MessageQueued,
  state: KernelState,
): void {
  if (state.places.has(queueId))
    throw invalid(`Thread ${state.threadId} has another message ${queueId}.`)
  for (const path of attachments) {
    if (state.files.has(path)) continue
    throw new RuntimeError(`There is no file ${path} in thread ${state.threadId}.`, {
      code: 'FILE_NOT_FOUND',
      hint: 'Write it first; nothing was sent.',
    })
  }
}

function invalid(message: string): RuntimeError {
  return new RuntimeError(message, {
    code: 'INPUT_INVALID',
    hint: 'Give `text`, `content` or both.',
  })
}
