import { type Message, messageFromJSON, messageToJSON } from '@skein/ai'
import type { StoredMessage } from '../thread-state.ts'
import { HttpError } from './http-error.ts'
import { jsonResponse, noContent, type Route } from './operation.ts'
import { answer, limit, listOf, offset, ref, shape, text } from './schemas.ts'
import { SkeinError, uuidV7 } from '@skein/base'
import type { SendMessage } from '../runtime-api.ts'
import type { Principal } from './principal.ts'

export const messageRoutes: readonly Route[] = [
  {
    id: 'listMessages',
    method: 'GET',
    path: '/threads/{threadId}/messages',
    tag: 'messages',
    summary: 'The conversation.',
    scope: 'threads:read',
    addresses: 'thread',
    probe: {},
    query: {
      limit: limit(1000),
      offset,
      order: { type: 'string', enum: ['asc', 'desc'] },
      includeSilent: { type: 'boolean' },
    },
    answers: [
      {
        status: 200,
        description: 'Messages in order.',
        schema: answer({ messages: listOf(ref('Message')) }),
      },
    ],
    async handle({ runtime, thread, query }) {
      const messages = await runtime.threads.messages(thread.id, { limit: 100, ...query })
      return jsonResponse({ messages: messages.map(toWire) })
    },
  },
  {
    id: 'sendMessage',
    method: 'POST',
    path: '/threads/{threadId}/messages',
    tag: 'messages',
    summary: 'Queues a message; a thread that does nothing starts a turn.',
    scope: 'threads:write',
    addresses: 'thread',
    probe: { body: { text: 'Hello' } },
    body: { json: ref('SendMessage') },
    answers: [{ status: 202, description: 'It is queued.', schema: ref('Sent') }],
    errors: ['THREAD_TERMINATED', 'FILE_NOT_FOUND', 'FILE_PATH_INVALID'],
    async handle({ runtime, thread, body, principal }) {
      const sent = await runtime.threads.send(thread.id, toSendMessage(body, principal))
      return jsonResponse(sent, { status: 202 })
    },
  },
  {
    id: 'updateMessage',
    method: 'PATCH',
    path: '/threads/{threadId}/messages/{messageId}',
    tag: 'messages',
    summary: 'Replaces the text, or the whole message.',
    scope: 'threads:write',
    addresses: 'thread',
    probe: { body: { text: 'Better' } },
    body: {
      json: { anyOf: [shape({ text: text(1_000_000) }), shape({ message: { type: 'object' } })] },
    },
    answers: [{ status: 204, description: 'It is replaced.' }],
    errors: ['MESSAGE_NOT_FOUND', 'THREAD_TERMINATED'],
    async handle({ runtime, thread, body, params }) {
      const { text: words, message } = body as { text?: string; message?: object } // checked by the schema
      const id = params['messageId']!
      const content =
        message === undefined ? words! : parseMessage({ ...message, id }, 'body.message')
      await runtime.threads.updateMessage(thread.id, id, content)
      return noContent()
    },
  },
  {
    id: 'deleteMessage',
    method: 'DELETE',
    path: '/threads/{threadId}/messages/{messageId}',
    tag: 'messages',
    summary: 'Removes a message from the conversation.',
    scope: 'threads:write',
    addresses: 'thread',
    probe: {},
    answers: [{ status: 204, description: 'It is removed.' }],
    errors: ['MESSAGE_NOT_FOUND', 'THREAD_TERMINATED'],
    async handle({ runtime, thread, params }) {
      await runtime.threads.deleteMessage(thread.id, params['messageId']!)
      return noContent()
    },
  },
  {
    id: 'unsendMessage',
    method: 'DELETE',
    path: '/threads/{threadId}/queue/{queueId}',
    tag: 'messages',
    summary: 'Takes back a message that still waits.',
    scope: 'threads:write',
    addresses: 'thread',
    probe: {},
    answers: [{ status: 204, description: 'It is taken back.' }],
    errors: ['MESSAGE_NOT_FOUND'],
    async handle({ runtime, thread, params }) {
      if (await runtime.threads.unsend(thread.id, params['queueId']!)) return noContent()
      throw new HttpError('No message waits under this id.', {
        code: 'MESSAGE_NOT_FOUND',
        hint: 'It may have been taken already; delete the message instead.',
      })
    },
  },
]

function toWire({ message, ...rest }: StoredMessage): object {
  return { ...rest, message: messageToJSON(message) }
}

/** A message as a client sent it, with its blocks checked and its author from who the client is. */
export function toSendMessage(message: unknown, { user }: Principal): SendMessage {
  const author = user === undefined ? {} : { userId: user }
  if (typeof message === 'string') return { text: message, ...author }
  const { content, ...rest } = message as SendMessage // checked by the schema
  if (content === undefined && (rest.text ?? '') === '' && !rest.attachments?.length)
    throw invalid('The message is empty.', 'body')
  if (content === undefined) return { ...rest, ...author }
  const checked = parseMessage({ type: 'user', content }, 'body.content')
  if (checked.type !== 'user') throw invalid('The message is not one of a user.', 'body.content')
  return { ...rest, content: checked.content, ...author }
}

/** A message from JSON; id and time may be missing. */
function parseMessage(json: object, field: string): Message {
  try {
    return messageFromJSON({ id: uuidV7(), timestamp: new Date().toISOString(), ...json })
  } catch (error) {
    if (!SkeinError.is(error) && !(error instanceof TypeError)) throw error
    throw invalid(error.message, field)
  }
}

function invalid(message: string, field: string): HttpError {
  return new HttpError(message, { code: 'INPUT_INVALID', problems: [{ field, message }] })
}
