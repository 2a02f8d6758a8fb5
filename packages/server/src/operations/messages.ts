import { messageFromJSON, messageToJSON, type Message } from '@skein/ai'
import { SkeinError, uuidV7 } from '@skein/base'
import { FOUND_EFFECTS, type SendMessage } from '@skein/runtime'
import type { Services } from '../http/services.ts'
import { HttpError, invalidInput } from './http-error.ts'
import { done, json, operation, type OperationRoute } from './operation.ts'
import { actorOf, seesAllOwners, type Principal, checkPlayground } from './principal.ts'
import { ref, side, type MessageBody, decisionReason, grantTime } from './schemas.ts'
import {
  answer,
  anything,
  arrayOf,
  between,
  boolean,
  choice,
  eitherOf,
  exactly,
  maxText,
  object,
  shape,
  string,
} from '@skein/base/shape'

/** The operations on the messages of a thread. */
export const messageOperations: readonly OperationRoute[] = [
  operation('listMessages', {
    tag: 'messages',
    summary: 'The conversation.',
    scope: 'threads:read',
    query: {
      limit: between(1, 1000),
      offset: between(0, 10_000_000),
      order: choice('asc', 'desc'),
      includeSilent: boolean,
    },
    answers: [json('Messages in order.', answer({ messages: arrayOf(ref('Message')) }))],
    async run({ runtime, thread, query }) {
      const messages = await runtime.threads.messages(thread.id, { limit: 100, ...query })
      return {
        messages: messages.map(({ message, ...rest }) => ({
          ...rest,
          message: messageToJSON(message),
        })),
      }
    },
  }),
  operation('sendMessage', {
    tag: 'messages',
    summary: 'Queues a message; a thread that does nothing starts a turn.',
    scope: 'threads:write',
    probe: { body: { text: 'Hello' } },
    body: { json: ref('SendMessage') },
    answers: [json('The message is queued.', ref('Sent'), 202)],
    errors: [
      'THREAD_TERMINATED',
      'THREAD_BUSY',
      'SPENDING_LIMIT',
      'FILE_NOT_FOUND',
      'FILE_PATH_INVALID',
      'PLAYGROUND_OFF',
    ],
    run: ({ runtime, thread, body, principal, services }) =>
      runtime.threads.send(thread.id, toSendMessage(body, principal, services)),
  }),
  operation('updateMessage', {
    tag: 'messages',
    summary: 'Replaces the text, or the whole message.',
    scope: 'threads:write',
    probe: { body: { text: 'Better' } },
    body: { json: eitherOf(shape({ text: maxText(1_000_000) }), shape({ message: object })) },
    answers: [done('The message is replaced.')],
    errors: ['MESSAGE_NOT_FOUND', 'THREAD_TERMINATED'],
    run({ runtime, thread, body, params: { messageId: id } }) {
      const content =
        'text' in body ? body.text : parseMessage({ ...body.message, id }, 'body.message')
      return runtime.threads.updateMessage(thread.id, id, content)
    },
  }),
  operation('deleteMessage', {
    tag: 'messages',
    summary: 'Removes a message from the conversation.',
    scope: 'threads:write',
    answers: [done('The message is removed.')],
    errors: ['MESSAGE_NOT_FOUND', 'THREAD_TERMINATED', 'INPUT_INVALID'],
    run: ({ runtime, thread, params }) =>
      runtime.threads.deleteMessage(thread.id, params.messageId),
  }),
  operation('unsendMessage', {
    tag: 'messages',
    summary: 'Withdraws a queued message, unless the parent of the thread sent it.',
    scope: 'threads:write',
    answers: [done('The message is withdrawn.')],
    errors: ['MESSAGE_NOT_FOUND', 'INPUT_INVALID'],
    async run({ runtime, thread, params }) {
      if (await runtime.threads.unsend(thread.id, params.queueId)) return
      throw new HttpError('No message with this id is in the queue.', {
        code: 'MESSAGE_NOT_FOUND',
        hint: 'If the thread has read the message already, delete the message instead.',
      })
    },
  }),
]

/** Converts a client's message: checks its blocks and sets its author to the client's user. */
export function toSendMessage(
  message: string | MessageBody,
  { user }: Principal,
  { studio }: Pick<Services, 'studio'>,
): SendMessage {
  if (typeof message === 'string') return { text: message, userId: user }
  const { content, ...rest } = message
  if (rest.model !== undefined || rest.settings !== undefined) checkPlayground(studio)
  if (content !== undefined) {
    const checked = parseMessage({ type: 'user', content }, 'body.content')
    if (checked.type !== 'user')
      throw invalidInput('The message is not one of a user.', 'body.content')
    return { ...rest, content: checked.content, userId: user }
  }
  if ((rest.text ?? '') === '' && !rest.attachments?.length)
    throw invalidInput('The message is empty.', 'body')
  return { ...rest, userId: user }
}

/** Reads a message from JSON; id and time may be missing. */
function parseMessage(message: object, field: string): Message {
  try {
    return messageFromJSON({ id: uuidV7(), timestamp: new Date().toISOString(), ...message })
  } catch (error) {
    if (!SkeinError.is(error) && !(error instanceof TypeError)) throw error
    throw invalidInput(error.message, field)
  }
}

/** The operations that list waiting calls and record decisions about them. */
export const approvalOperations: readonly OperationRoute[] = [
  operation('listApprovals', {
    tag: 'approvals',
    summary:
      'What waits for a person, over all threads and depths, the oldest first. `threadIdPart` and `interruptIdPart` are ids, or their beginnings or ends. A page may have fewer items than `limit`; the last page has no `nextCursor`.',
    scope: 'threads:read',
    query: {
      rootId: maxText(200),
      threadId: maxText(200),
      threadIdPart: maxText(200),
      interruptIdPart: maxText(200),
      agent: maxText(200),
      owner: maxText(200),
      kind: choice('approval', 'input', 'in_doubt', 'variables'),
      limit: between(1, 1000),
      cursor: maxText(2000),
    },
    answers: [
      json(
        'What waits, with what is asked.',
        answer({ waiting: arrayOf(ref('WaitingItem')), 'nextCursor?': string }),
      ),
    ],
    run({ runtime, principal, query }) {
      const { tenant, user } = principal
      const owner = seesAllOwners(principal) ? query.owner : user
      return runtime.inbox.page({ ...query, tenant, owner })
    },
  }),
  operation('getApproval', {
    tag: 'approvals',
    summary:
      'One request for a decision, waiting or decided: what would run, its risk and undo, the evidence, who decided and when.',
    scope: 'threads:read',
    answers: [json('The request.', ref('WaitingDetail'))],
    errors: ['INTERRUPT_NOT_FOUND'],
    run: ({ runtime, thread, params }) =>
      runtime.inbox.get({ threadId: thread.id, interruptId: params.interruptId }),
  }),
  operation('decide', {
    tag: 'approvals',
    summary: 'Approves, denies, settles what is in doubt, or answers. The first decision counts.',
    scope: 'approvals:write',
    probe: { body: { type: 'deny', reason: 'Not today.' } },
    body: {
      json: eitherOf(
        shape({
          type: exactly('approve'),
          'reason?': decisionReason,
          'tokens?': arrayOf(maxText(20_000), 10),
          'with?': object,
          'digest?': maxText(200),
          'grantForMs?': grantTime,
        }),
        shape({ type: exactly('deny'), reason: decisionReason }),
        shape({ type: exactly('settle'), found: choice(...FOUND_EFFECTS) }),
        shape({ type: exactly('result'), value: anything }),
        shape({ type: exactly('error'), message: decisionReason }),
      ),
    },
    answers: [done('The decision was recorded.')],
    errors: ['INTERRUPT_NOT_FOUND', 'ALREADY_ANSWERED', 'ANSWER_INVALID', 'THREAD_TERMINATED'],
    async run({ runtime: { inbox }, thread, params, body, principal }) {
      const { interruptId } = params
      const item = { threadId: thread.id, interruptId, by: actorOf(principal) }
      switch (body.type) {
        case 'approve': {
          const { type: _, ...given } = body
          return inbox.approve({ ...item, ...given })
        }
        case 'deny':
          return inbox.deny({ ...item, reason: body.reason })
        case 'settle':
          return inbox.settle(item, body.found)
        default:
          return inbox.answer(item, body)
      }
    },
  }),
]

/** The operations that stop, resume, end and copy threads, and wait for their results. */
export const controlOperations: readonly OperationRoute[] = [
  operation('stopThread', {
    tag: 'control',
    summary: 'Stops the run. Its messages stay; a new message or a resume continues the thread.',
    scope: 'threads:write',
    body: { json: shape({ 'afterStep?': boolean }), isOptional: true },
    answers: [done('Done.')],
    errors: ['THREAD_TERMINATED'],
    run: ({ runtime, thread, body, principal }) =>
      runtime.threads.stop(thread.id, { ...body, by: actorOf(principal) }),
  }),
  operation('resumeThread', {
    tag: 'control',
    summary: 'Continues the thread after a stop, a failure or a limit.',
    scope: 'threads:write',
    body: { json: shape({ 'side?': side }), isOptional: true },
    answers: [done('Done.')],
    errors: ['THREAD_TERMINATED'],
    run: ({ runtime, thread, body, principal }) =>
      runtime.threads.resume(thread.id, { ...body, by: actorOf(principal) }),
  }),
  operation('terminateThread', {
    tag: 'control',
    summary: 'Ends a thread and its descendants for good. The history stays.',
    scope: 'threads:write',
    body: { json: shape({ 'detach?': boolean }), isOptional: true },
    answers: [done('Done.')],
    run: ({ runtime, thread, body, principal }) =>
      runtime.threads.terminate(thread.id, { ...body, by: actorOf(principal) }),
  }),
  operation('eraseThread', {
    tag: 'control',
    summary: 'Removes the contents; the skeleton and the audit log stay.',
    scope: 'threads:write',
    body: { json: shape({}), isOptional: true },
    answers: [done('Done.')],
    run: ({ runtime, thread, principal }) =>
      runtime.threads.erase(thread.id, { by: actorOf(principal) }),
  }),
  operation('forkThread', {
    tag: 'control',
    summary:
      'A new thread with the history up to and with the message `upTo`, or before the message `before`. Nothing of it runs again. With `message` it is sent there at once; with `send` alone the last message is answered again.',
    scope: 'threads:write',
    body: {
      json: shape({
        'upTo?': maxText(200),
        'before?': maxText(200),
        'title?': maxText(256),
        'message?': eitherOf(maxText(1_000_000), ref('SendMessage')),
        'send?': boolean,
      }),
      isOptional: true,
    },
    answers: [
      json('The new thread, and what the original did after this place.', ref('ForkedThread'), 201),
    ],
    errors: [
      'MESSAGE_NOT_FOUND',
      'FILE_NOT_FOUND',
      'FILE_PATH_INVALID',
      'SPENDING_LIMIT',
      'PLAYGROUND_OFF',
    ],
    run({ runtime, thread, body: { message, send, ...rest }, principal, services }) {
      if (message !== undefined && send === false)
        throw invalidInput('A message of a fork is sent at once; leave it out.', 'body.message')
      return runtime.threads.fork(thread.id, {
        ...rest,
        owner: principal.user,
        message: message === undefined ? undefined : toSendMessage(message, principal, services),
        isContinued: send,
      })
    },
  }),
  operation('getResult', {
    tag: 'control',
    summary: 'Waits until the thread is parked, and says how its session ended.',
    scope: 'threads:read',
    query: { waitMs: between(0, 60_000) },
    answers: [
      json('How the session ended, or what it waits for.', ref('SessionResult')),
      done('The thread still runs: ask again.'),
    ],
    async run({ runtime, thread, query: { waitMs = 30_000 }, request, services }) {
      const late = new AbortController()
      const timer = services.timers.set(waitMs, () => late.abort())
      const signal = AbortSignal.any([late.signal, request.signal])
      try {
        return await runtime.threads.settled(thread.id, { signal })
      } catch (error) {
        if (signal.aborted) return undefined
        throw error
      } finally {
        services.timers.clear(timer)
      }
    },
  }),
]
