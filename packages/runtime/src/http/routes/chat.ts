import { actorOf } from '../principal.ts'
import { answerChat, holds, streamAnswer } from '../chat/answer-chat.ts'
import { CHAT_BODY } from '../chat/chat-body.ts'
import { chatHistory } from '../chat/chat-history.ts'
import { findAnswer } from '../chat/find-answer.ts'
import { isAnswering } from '../chat/is-answering.ts'
import { jsonResponse, noContent } from '../json-response.ts'
import type { Route, RouteAnswer, ThreadCall } from '../route.ts'
import { answer, listOf } from '../schemas.ts'

const hold = { type: 'boolean' }
const children = { type: 'boolean' }

const stream: RouteAnswer = {
  status: 200,
  description: 'Chunks of the UI message stream, version 1, and `[DONE]`.',
  mediaType: 'text/event-stream',
  schema: { type: 'string' },
}

/** What `useChat` of the AI SDK speaks. `{threadId}` is the id that the page gave its chat, or the thread's own. */
export const chatRoutes: readonly Route[] = [
  {
    id: 'chat',
    method: 'POST',
    path: '/agents/{agent}/chat',
    tag: 'chat',
    summary: 'Takes new messages, decisions and tool results of a page, and streams the answer.',
    scope: 'threads:write',
    addresses: 'nothing',
    probe: {
      body: {
        id: 'my-chat',
        messages: [{ id: 'm1', role: 'user', parts: [{ type: 'text', text: 'Hello' }] }],
        trigger: 'submit-message',
      },
    },
    query: { hold, children },
    body: { json: CHAT_BODY, isLarge: true },
    answers: [stream],
    errors: [
      'AGENT_NOT_FOUND',
      'THREAD_NOT_FOUND',
      'THREAD_TERMINATED',
      'HISTORY_FIXED',
      'ANSWER_INVALID',
      'STREAM_LIMIT',
    ],
    handle: answerChat,
  },
  {
    id: 'getChat',
    method: 'GET',
    path: '/agents/{agent}/chat/{threadId}',
    tag: 'chat',
    summary: 'The messages of a chat, for a page that opens.',
    scope: 'threads:read',
    addresses: 'thread',
    isChat: true,
    probe: {},
    query: { hold },
    answers: [
      {
        status: 200,
        description: 'Messages as `useChat` holds them.',
        schema: answer({
          threadId: { type: 'string' },
          isAnswering: { type: 'boolean' },
          messages: listOf({ type: 'object' }),
        }),
      },
    ],
    async handle(call) {
      const { runtime, thread, services } = call
      const messages = await chatHistory(runtime, thread, { hold: holds(call) })
      const isRunning = await isAnswering(runtime, thread, services.clock.now())
      return jsonResponse({ threadId: thread.id, isAnswering: isRunning, messages })
    },
  },
  {
    id: 'resumeChat',
    method: 'GET',
    path: '/agents/{agent}/chat/{threadId}/stream',
    tag: 'chat',
    summary: 'The answer that is being given, from its beginning and then live.',
    scope: 'threads:read',
    addresses: 'thread',
    isChat: true,
    probe: {},
    query: { hold, children },
    answers: [stream, { status: 204, description: 'No answer is being given.' }],
    errors: ['STREAM_LIMIT'],
    handle: resumeChat,
  },
  {
    id: 'stopChat',
    method: 'POST',
    path: '/agents/{agent}/chat/{threadId}/stop',
    tag: 'chat',
    summary: 'Stops the answer. Closing the connection does not.',
    scope: 'threads:write',
    addresses: 'thread',
    isChat: true,
    probe: {},
    answers: [{ status: 204, description: 'Done.' }],
    errors: ['THREAD_TERMINATED'],
    async handle({ runtime, thread, principal }) {
      await runtime.threads.stop(thread.id, { by: actorOf(principal) })
      return noContent()
    },
  },
]

async function resumeChat(call: ThreadCall): Promise<Response> {
  const { runtime, thread, services } = call
  if (!(await isAnswering(runtime, thread, services.clock.now()))) return noContent()
  const { after } = await findAnswer(runtime, thread.id, thread.seq)
  return streamAnswer(call, thread, { after })
}
