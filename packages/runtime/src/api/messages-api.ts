import { IF_BUSY, type SendMessage, type Sent, type Threads } from '../contract/runtime-api.ts'
import { isFromPerson, registryOf } from '../state/kernel-state.ts'
import { CHOSEN_RUN } from '../state/chosen-run.ts'
import { modelNamed, modelNames } from '../definitions/resolved.ts'
import { type FacadeBuffer, jsonCopy } from '../thread/facade-buffer.ts'
import { facadeFiles } from '../thread/facade-files.ts'
import {
  facadeMessages,
  type FacadeMessages,
  selectMessages,
  storedMessage,
  storedMessages,
} from '../thread/messages.ts'
import { type ApiContext, headOf, load } from './api-context.ts'
import { bufferOf, editThread, editWith } from './edit-thread.ts'
import { checkedMetadata, checkLabel } from './labels.ts'
import { redacted } from './redacted-changes.ts'
import { type Message, messageToJSON, UserMessage } from '@skein/ai'
import type { HookName } from '../definitions/hooks.ts'
import type { HookDefinition } from '../definitions/types.ts'
import { RuntimeError } from '../contract/error.ts'
import { type HookPlace, runHook } from '../hooks/run-hook.ts'
import { withState } from './with-state.ts'
import { type JsonObject, type JsonValue, type MessageJSON } from '@skein/base'
import type { MessageQueued, RuntimeEvent } from '../contract/event.ts'
import { normalisePath } from '../thread/paths.ts'
import { incomingTraceparent } from '../telemetry/telemetry.ts'

/** Creates the message functions of the API. They make the same checks as the message functions of tools. */
export function messagesApi(
  context: ApiContext,
): Pick<Threads, 'messages' | 'updateMessage' | 'deleteMessage'> {
  return {
    async messages(threadId, query) {
      const { state } = await load(context, threadId)
      const { order, offset = 0, limit = Infinity } = query ?? {}
      const last = order === 'desc' && offset >= 0 && limit >= 0 ? offset + limit : Infinity
      return selectMessages(storedMessages(state, last), query)
    },
    async updateMessage(threadId, messageId, content) {
      const { state } = await load(context, threadId)
      const scratch = facadeOf(bufferOf(context, state))
      scratch.updateMessage(messageId, content)
      let { message } = scratch.getMessage(messageId)! // the message was found above
      // Hooks run once, before the edit: the edit may be tried several times, and hooks may write to the
      // thread.
      for (const hook of await hooksOf(context, threadId, 'before_update_message')) {
        const result = await runApiHook(context, threadId, hook, [messageId, message])
        if (result) message = result.answer as Message // an answer of this kind of hook is a message
      }
      const target = { threadId, point: 'update_message' }
      await editWith(context, target, (buffer) =>
        facadeOf(buffer).updateMessage(messageId, message),
      )
      for (const hook of await hooksOf(context, threadId, 'after_update_message')) {
        const stored = storedMessage((await load(context, threadId)).state, messageId)
        if (stored) await runApiHook(context, threadId, hook, [stored])
      }
    },
    async deleteMessage(threadId, messageId) {
      // A message that is still in the queue is withdrawn.
      if (await unsendMessage(context, threadId, messageId)) return
      const target = { threadId, point: 'delete_message' }
      await editWith(context, target, (buffer) => {
        facadeOf(buffer).deleteMessage(messageId)
      })
    },
  }
}

function facadeOf(buffer: FacadeBuffer): FacadeMessages {
  return facadeMessages(buffer, facadeFiles(buffer))
}

async function hooksOf(
  context: ApiContext,
  threadId: string,
  name: HookName,
): Promise<readonly HookDefinition[]> {
  const { state } = await load(context, threadId)
  const agent = registryOf(context.registry, state).agents.get(state.agent)
  return agent?.a.hooks.filter(({ hook }) => hook === name) ?? []
}

/** Runs a hook for a call of the API, in the same way as in the work on a thread. */
async function runApiHook(
  context: ApiContext,
  threadId: string,
  hook: HookDefinition,
  args: readonly unknown[],
): Promise<{ readonly answer: unknown } | undefined> {
  const { state } = await load(context, threadId)
  const { limits, watchdog } = context
  const place: HookPlace = {
    state,
    timeoutMs: limits.hookTimeoutMs,
    withState: (_, work) => withState(context, threadId, work, { isRepeatable: false }),
    runUserCode: (code, work) => (watchdog ? watchdog.run({ ...code, threadId }, work) : work()),
    at: () => context.at(),
    async raise(event) {
      const { state: current } = await load(context, threadId)
      const threads = redacted(context, current, [{ id: threadId, append: [event] }])
      await context.commit({ point: 'hook_failed', threads })
    },
    report: (error) => context.report(error, threadId),
  }
  return runHook(place, hook, args)
}

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
    const known = state.queuedIds.get(queueId)
    if (known !== undefined) return { result: known }
    if (state.places.has(queueId))
      throw invalid(`Thread ${threadId} has another message ${queueId}.`)
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
    const unanswered = ifBusy === 'restart' ? state.queue.filter(isFromPerson) : []
    const withdrawn = unanswered.map(({ queueId }) => unqueued(context, queueId))
    const cuts = state.session && (ifBusy === 'cut' || ifBusy === 'restart') && { ifBusy }
    const wake = { by: context.clock.now() }
    return { result: undefined, change: { append: [...withdrawn, { ...message, ...cuts }], wake } }
  })
  return { queueId, messageId: queueId, seq: result ?? seq }
}

/**
 * Withdraws a message that is still in the queue. Returns false when it was already read or never sent. A message of
 * the parent stays, because the parent may wait for its answer.
 */
export async function unsendMessage(
  context: ApiContext,
  threadId: string,
  queueId: string,
): Promise<boolean> {
  const target = { threadId, point: 'unsend_message' }
  const { result } = await editThread(context, target, ({ state }) => {
    const queued = state.queue.find((one) => one.queueId === queueId)
    if (!queued) return { result: false }
    if (queued.metadata?.['from'] === 'parent')
      throw new RuntimeError(`The message ${queueId} of the parent cannot be withdrawn.`, {
        code: 'INPUT_INVALID',
        hint: 'Stop the thread instead: its parent then gets an answer.',
      })
    return { result: true, change: { append: [unqueued(context, queueId)] } }
  })
  return result
}

function unqueued(context: ApiContext, queueId: string): RuntimeEvent {
  return { type: 'message_unqueued', at: context.at(), queueId }
}

/**
 * Creates the event that queues a sent message. The message id is its queue id, so sending it twice queues it
 * once.
 */
export function queuedMessage(context: ApiContext, sent: SendMessage | string): MessageQueued {
  const message: SendMessage = typeof sent === 'string' ? { text: sent } : sent
  const { role = 'user', text, content = [] } = message
  if (role !== 'user' && role !== 'assistant')
    throw invalid(`A message cannot be sent as ${JSON.stringify(role)}.`)
  if (text !== undefined && typeof text !== 'string')
    throw invalid('The text of the message is not a string.')
  const attachments = (message.attachments ?? []).map(normalisePath)
  if ((text ?? '').trim() === '' && content.length === 0 && attachments.length === 0)
    throw invalid('The message is empty.')
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
 * The fields of metadata that only the runtime may set, because it relies on them: who sent a message
 * (`from`), what it is (`kind`), which side of the conversation it is for (`for`), and how it is answered.
 */
const OWN_FIELDS = ['from', 'kind', 'for', CHOSEN_RUN] as const

/** Returns the metadata of a message, with the model, settings or call that its sender chose for the answer. */
function messageMetadata(
  context: ApiContext,
  { metadata, model, settings, call }: SendMessage,
): JsonObject | undefined {
  const own = metadata && checkedMetadata(metadata, 'the message')
  const taken = own && OWN_FIELDS.find((name) => Object.hasOwn(own, name))
  if (taken !== undefined)
    throw new RuntimeError(`The metadata of a message cannot have "${taken}".`, {
      code: 'INPUT_INVALID',
      hint:
        taken === CHOSEN_RUN
          ? 'Give `model` and `settings` beside the metadata.'
          : 'The runtime marks its own messages with from, kind and for. Use another name.',
    })
  if (model === undefined && settings === undefined && call === undefined) return own
  if (model !== undefined && !modelNamed(context.registry, model))
    throw new RuntimeError(`There is no model ${JSON.stringify(model)}.`, {
      code: 'INPUT_INVALID',
      hint: `Known models: ${modelNames(context.registry).join(', ')}.`,
    })
  const chosen: Record<string, JsonValue> = {}
  if (model !== undefined) chosen['model'] = model
  if (settings !== undefined) chosen['settings'] = checkedMetadata(settings, 'the model')
  if (call !== undefined) {
    const args = jsonCopy(call.arguments, {
      subject: `The arguments of "${call.toolName}"`,
      code: 'INPUT_INVALID',
      maxBytes: context.limits.maxMessageBytes,
    })
    chosen['call'] = { toolName: call.toolName, arguments: args }
  }
  return { ...own, [CHOSEN_RUN]: chosen }
}

function invalid(message: string): RuntimeError {
  return new RuntimeError(message, {
    code: 'INPUT_INVALID',
    hint: 'Give `text`, `content` or both.',
  })
}
