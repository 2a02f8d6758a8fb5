import type { ThreadIdentity } from '../../operations/thread-identity.ts'
import type { UIMessage } from '@skein/threads/ai-sdk'
import { done, json, operation, stream, type OperationRoute } from '../../operations/operation.ts'
import { actorOf } from '../../operations/principal.ts'
import { answer, arrayOf, between, boolean, integer, string, type Shape } from '@skein/base/shape'
import type {} from '@skein/runtime'
import { answerChat, streamAnswer } from './answer-chat.ts'
import { CHAT_BODY } from './page-body.ts'
import { findAnswer } from '../chat/find-answer.ts'
import { isAnsweringChat } from '../chat/until-settled.ts'
import { holds } from '../chat/shown-events.ts'
import { chatHistory } from '../chat/chat-history.ts'

const uiMessage: Shape<UIMessage> = { type: 'object' }

const chunks = stream('Chunks of the UI message stream, version 1, and `[DONE]`.')

/**
 * The operations that `useChat` of the AI SDK calls. `{threadId}` is the page's id of the chat, or the
 * thread's id.
 */
export const aiSdkOperations: readonly OperationRoute[] = [
  operation('chat', {
    tag: 'chat',
    summary: 'Takes new messages, decisions and tool results of a page, and streams the answer.',
    scope: 'threads:write',
    probe: {
      body: {
        id: 'my-chat',
        messages: [{ id: 'm1', role: 'user', parts: [{ type: 'text', text: 'Hello' }] }],
        trigger: 'submit-message',
      },
    },
    query: { hold: boolean, children: boolean },
    body: { json: CHAT_BODY, isLarge: true },
    answers: [chunks],
    errors: [
      'SPENDING_LIMIT',
      'AGENT_NOT_FOUND',
      'THREAD_NOT_FOUND',
      'THREAD_TERMINATED',
      'THREAD_BUSY',
      'HISTORY_FIXED',
      'ANSWER_INVALID',
      'STREAM_LIMIT',
    ],
    run: answerChat,
  }),
  operation('getChat', {
    tag: 'chat',
    summary: 'The messages of a chat, for a page that opens.',
    scope: 'threads:read',
    isChat: true,
    query: { hold: boolean },
    answers: [
      json(
        'Messages as `useChat` holds them.',
        answer({
          threadId: string,
          isAnswering: boolean,
          seq: integer,
          messages: arrayOf(uiMessage),
        }),
      ),
    ],
    async run(call) {
      const { runtime, thread, services } = call
      return {
        threadId: thread.id,
        ...(await chatHistory(runtime, thread, { hold: holds(call) })),
        isAnswering: await isAnsweringChat(runtime, thread, services.clock.now()),
      }
    },
  }),
  operation('resumeChat', {
    tag: 'chat',
    summary: 'The answer that is being given, from its beginning and then live.',
    scope: 'threads:read',
    isChat: true,
    query: { hold: boolean, children: boolean, after: between(0, Number.MAX_SAFE_INTEGER) },
    answers: [chunks, done('No answer is being given, and none has ended since `after`.')],
    errors: ['STREAM_LIMIT'],
    async run(call) {
      const { runtime, thread, services, query } = call
      const isAnswering = await isAnsweringChat(runtime, thread, services.clock.now())
      if (!isAnswering && !mayHaveMissed(thread, query.after)) return
      const { after, messageId } = await findAnswer(runtime, thread.id, thread.seq)
      if (!isAnswering && messageId === undefined) return
      return streamAnswer(call, thread, { after })
    },
  }),
  operation('stopChat', {
    tag: 'chat',
    summary: 'Stops the answer. Closing the connection does not.',
    scope: 'threads:write',
    isChat: true,
    answers: [done('Done.')],
    errors: ['THREAD_TERMINATED'],
    run: ({ runtime, thread, principal }) =>
      runtime.threads.stop(thread.id, { by: actorOf(principal) }),
  }),
]

/**
 * Whether something may have happened between reading the history up to the event `after` and now: the answer
 * continued and ended, or a child, which has a log of its own, asked for an approval.
 */
function mayHaveMissed(
  { seq, lifecycle, waiting }: ThreadIdentity,
  after: number | undefined,
): boolean {
  if (after === undefined) return false
  return seq > after || (lifecycle === 'waiting' && waiting === 0)
}
