import { UserMessage, messageToJSON } from '@skein/ai'
import type { JsonObject, JsonValue, MessageJSON } from '@skein/base'
import { headOf, type ApiContext } from './api-context.ts'
import { editThread } from './edit-thread.ts'
import { checkLabel, checkedMetadata } from './labels.ts'
import { unqueued } from './unsend-message.ts'
import { RuntimeError } from '../contract/error.ts'
import type { MessageQueued } from '../contract/event.ts'
import { IF_BUSY, type SendMessage, type Sent } from '../contract/send-message.ts'
import { modelNamed, modelNames } from '../definitions/resolved.ts'
import { isFromPerson } from '../state/kernel-state.ts'
import { incomingTraceparent } from '../telemetry/telemetry.ts'
import { normalisePath } from '../thread/paths.ts'
import { CHOSEN_RUN } from '../state/chosen-run.ts'
import { jsonCopy } from '../thread/facade-buffer.ts'

/**
 * Queues a message and wakes the thread. The same message id is queued only once. `ifBusy` (what to do if the
 * thread is working) is evaluated on exactly the log to which the message is appended, so no other write can
 * come between.
 */
export async function sendMessage(
  context: ApiContext,
  threadId: string,
  sent: SendMessage | string,
): Promise<Sent> {
  const message = queuedMessage(context, sent)
  const { queueId, attachments = [] } = message
  const { ifBusy = 'enqueue' } = typeof sent === 'string' ? {} : sent
  if (!IF_BUSY.includes(ifBusy))
    throw new RuntimeError(`A message cannot be sent with ifBusy ${JSON.stringify(ifBusy)}.`, {
      code: 'INPUT_INVALID',
      hint: `Use one of ${IF_BUSY.join(', ')}.`,
    })
  if (context.spending) await context.spending.checkSend(await headOf(context, threadId))
  const target = { threadId, point: 'send_message' }
  const { result, seq } = await editThread(context, target, ({ state }) => {
    const earlierSeq = state.queuedIds.get(queueId)
    if (earlierSeq !== undefined) return { result: earlierSeq }
    if (state.places.has(queueId))
      throw invalidMessage(`Thread ${threadId} has another message ${queueId}.`)
    for (const path of attachments)
      if (!state.files.has(path))
        throw new RuntimeError(`There is no file ${path} in thread ${threadId}.`, {
          code: 'FILE_NOT_FOUND',
          hint: 'Write the file first; nothing was sent.',
        })
    const isBusy =
      state.session || state.resume || (state.queue.length > 0 && state.stop !== 'stopped')
    if (isBusy && ifBusy === 'reject')
      throw new RuntimeError(`Thread ${threadId} is busy; the message was not sent.`, {
        code: 'THREAD_BUSY',
        hint: 'Send it when the thread is at rest, or with `ifBusy` enqueue, cut or restart.',
      })
    // A restart also withdraws the queued messages of people, which no turn has answered yet.
    const openMessages = ifBusy === 'restart' ? state.queue.filter(isFromPerson) : []
    const withdrawn = openMessages.map(({ queueId }) => unqueued(context, queueId))
    const cuts = state.session && (ifBusy === 'cut' || ifBusy === 'restart') && { ifBusy }
    const wake = { by: context.clock.now() }
    return { result: undefined, change: { append: [...withdrawn, { ...message, ...cuts }], wake } }
  })
  return { queueId, messageId: queueId, seq: result ?? seq }
}

/**
 * Creates the event that queues a sent message. The message id is its queue id, so sending it twice queues it
 * once.
 */
export function queuedMessage(context: ApiContext, sent: SendMessage | string): MessageQueued {
  const message: SendMessage = typeof sent === 'string' ? { text: sent } : sent
  const { role = 'user', text, content = [] } = message
  if (role !== 'user' && role !== 'assistant')
    throw invalidMessage(`A message cannot be sent as ${JSON.stringify(role)}.`)
  if (text !== undefined && typeof text !== 'string')
    throw invalidMessage('The text of the message is not a string.')
  const attachments = (message.attachments ?? []).map(normalisePath)
  if ((text ?? '').trim() === '' && content.length === 0 && attachments.length === 0)
    throw invalidMessage('The message is empty.')
  const at = context.at()
  const id = message.messageId ?? context.ids()
  checkLabel(id, 'The id of the message')
  let json: MessageJSON
  try {
    const blocks = text === undefined ? content : [{ type: 'text', text } as const, ...content]
    json = messageToJSON(new UserMessage([...blocks], { id, timestamp: new Date(at) }))
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause)
    throw new RuntimeError(`The message cannot be read: ${why}`, { code: 'INPUT_INVALID', cause })
  }
  const copy = jsonCopy(json, {
    subject: `The message ${id}`,
    code: 'INPUT_INVALID',
    maxBytes: context.limits.maxMessageBytes,
  })
  return {
    type: 'message_queued',
    at,
    queueId: id,
    role,
    message: copy as unknown as MessageJSON, // a copy of `json`
    resumes: true,
    isSilent: message.isSilent || undefined,
    userId: message.userId,
    attachments: attachments.length > 0 ? attachments : undefined,
    metadata: messageMetadata(context, message),
    trace: context.telemetry?.active() ?? incomingTraceparent.getStore(),
  }
}

/**
 * The fields of metadata that only the runtime may set, because it relies on them: who sent a message (`from`), what
 * it is (`kind`), which side it is for (`for`), and how it is answered.
 */
const OWN_FIELDS = ['from', 'kind', 'for', CHOSEN_RUN] as const

/** Returns the metadata of a message, with the model, settings or call that its sender chose for the answer. */
function messageMetadata(
  context: ApiContext,
  { metadata, model, settings, call }: SendMessage,
): JsonObject | undefined {
  const own = metadata && checkedMetadata(metadata, 'the message')
  const ownField = own && OWN_FIELDS.find((name) => Object.hasOwn(own, name))
  if (ownField !== undefined)
    throw new RuntimeError(`The metadata of a message cannot have "${ownField}".`, {
      code: 'INPUT_INVALID',
      hint:
        ownField === CHOSEN_RUN
          ? 'Give `model` and `settings` next to the metadata.'
          : 'The runtime marks its own messages with from, kind and for. Use another name.',
    })
  if (model === undefined && settings === undefined && call === undefined) return own
  if (model !== undefined && !modelNamed(context.registry, model))
    throw new RuntimeError(`There is no model ${JSON.stringify(model)}.`, {
      code: 'INPUT_INVALID',
      hint: `Known models: ${modelNames(context.registry).join(', ')}.`,
    })
  const choice: Record<string, JsonValue> = {}
  if (model !== undefined) choice['model'] = model
  if (settings !== undefined) choice['settings'] = checkedMetadata(settings, 'the model')
  if (call !== undefined) {
    const args = jsonCopy(call.arguments, {
      subject: `The arguments of "${call.toolName}"`,
      code: 'INPUT_INVALID',
      maxBytes: context.limits.maxMessageBytes,
    })
    choice['call'] = { toolName: call.toolName, arguments: args }
  }
  return { ...own, [CHOSEN_RUN]: choice }
}

function invalidMessage(message: string): RuntimeError {
  return new RuntimeError(message, {
    code: 'INPUT_INVALID',
    hint: 'Give `text`, `content` or both.',
  })
}
