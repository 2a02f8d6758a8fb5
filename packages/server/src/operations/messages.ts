import { messageFromJSON, messageToJSON, type Message } from '@skein/ai'
import { SkeinError, uuidV7 } from '@skein/base'
import type { SendMessage } from '@skein/runtime'
import type { Services } from '../http/services.ts'
import { HttpError, invalidInput } from './http-error.ts'
import { done, json, operation, type OperationRoute } from './operation.ts'
import { type Principal, checkPlayground } from './principal.ts'
import { ref, type MessageBody } from './schemas.ts'
import {
  answer,
  arrayOf,
  between,
  boolean,
  choice,
  eitherOf,
  maxText,
  object,
  shape,
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
    const parsedMessage = parseMessage({ type: 'user', content }, 'body.content')
    if (parsedMessage.type !== 'user')
      throw invalidInput('The message is not one of a user.', 'body.content')
    return { ...rest, content: parsedMessage.content, userId: user }
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
