import type { SendMessage, Sent } from '../runtime-api.ts'
import { type ApiContext, checkedMetadata, checkLabel, editThread } from './api-context.ts'
import { type MessageJSON, messageToJSON, UserMessage } from '@skein/ai'
import type { UppMessage } from '@skein/threads/upp'
import { RuntimeError } from '../error.ts'
import type { MessageQueued } from '../event.ts'
import type { KernelState } from '../kernel/state.ts'
import { jsonCopy } from '../services/json-copy.ts'
import { normalisePath } from '../services/paths.ts'

/** Queues a message, once per message id, and wakes the thread. */
export async function sendMessage(
  context: ApiContext,
  threadId: string,
  sent: SendMessage | string,
): Promise<Sent> {
  const message = queuedMessage(context, sent)
  const { queueId } = message
  const { result, seq } = await editThread(
    context,
    { threadId, point: 'send_message' },
    ({ state }) => {
      const known = state.queuedIds.get(queueId)
      if (known !== undefined) return { result: known }
      checkQueued(message, state)
      const wake = { by: context.clock.now() }
      return { result: undefined, change: { append: [message], wake } }
    },
  )
  return { queueId, messageId: queueId, seq: result ?? seq }
}

/** Takes back a message that still waits; false when it was taken already, or never sent. */
export async function unsendMessage(
  context: ApiContext,
  threadId: string,
  queueId: string,
): Promise<boolean> {
  const target = { threadId, point: 'unsend_message' }
  const { result } = await editThread(context, target, ({ state }) => {
    if (!state.queue.some((queued) => queued.queueId === queueId)) return { result: false }
    const append = [{ type: 'message_unqueued', at: context.at(), queueId } as const]
    return { result: true, change: { append } }
  })
  return result
}

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
function checkQueued({ queueId, attachments = [] }: MessageQueued, state: KernelState): void {
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
