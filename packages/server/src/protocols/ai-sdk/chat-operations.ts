import { toUIMessages, type UIMessage, type UIMessageChunk } from '@skein/threads/ai-sdk'
import { threadFromEvents } from '@skein/threads/events'
import { done, json, operation, stream, type OperationRoute } from '../../operations/operation.ts'
import { actorOf } from '../../operations/principal.ts'
import { answer, arrayOf, between, boolean, integer, string, type Shape } from '@skein/base/shape'
import type { Runtime, ThreadInfo } from '@skein/runtime'
import { answerChat, streamAnswer } from '../chat/answer-chat.ts'
import { CHAT_BODY } from '../chat/chat-body.ts'
import { approvalsBelow } from '../chat/children.ts'
import { findAnswer, isAnsweringChat } from '../chat/find-answer.ts'
import {
  holds,
  isChecked,
  isDelivered,
  isGovernedAgent,
  ShownEvents,
} from '../chat/shown-events.ts'

const uiMessage: Shape<UIMessage> = { type: 'object' }
const chunks = stream('Chunks of the UI message stream, version 1, and `[DONE]`.')

/**
 * The operations that `useChat` of the AI SDK calls. `{threadId}` is the page's id of the chat, or the
 * thread's id.
 */
export const chatOperations: readonly OperationRoute[] = [
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
 * went on and ended, or a child, which has a log of its own, asked for an approval.
 */
function mayHaveMissed(
  { seq, lifecycle, waiting }: ThreadInfo,
  after: number | undefined,
): boolean {
  if (after === undefined) return false
  return seq > after || (lifecycle === 'waiting' && waiting === 0)
}

/**
 * Returns the messages that a page needs when it opens a chat: the same messages that the page would have
 * built from its own streams. `seq` is the number of the last event that they contain.
 */
export async function chatHistory(
  runtime: Runtime,
  thread: ThreadInfo,
  options: { readonly hold: boolean },
): Promise<{ readonly messages: readonly UIMessage[]; readonly seq: number }> {
  const shown = new ShownEvents(runtime.registry, options)
  const stored = await runtime.threads.events(thread.id)
  const events = [...stored.flatMap(({ event }) => shown.push(event)), ...shown.end()]
  const document = threadFromEvents(events, { includeRunning: true }).value
  const checked = new Set(
    stored.flatMap(({ event }) =>
      isChecked(event) && 'agentId' in event ? agentNameOf(event.agentId ?? '') : [],
    ),
  )
  const isGoverned = (agent: string): boolean =>
    checked.has(agent) || isGovernedAgent(runtime.registry, agent)
  const messages = toUIMessages(document).map((message) => withThread(thread, message, isGoverned))
  const waiting =
    thread.lifecycle === 'waiting'
      ? await runtime.inbox.list({ tenant: thread.tenant, rootId: thread.rootId })
      : []
  const chunks = await approvalsBelow(runtime, thread, waiting, shown.view)
  const seq = stored.at(-1)?.seq ?? 0
  return { messages: chunks.length === 0 ? messages : withChunks(messages, chunks), seq }
}

type Turns = readonly { readonly agent_id: string }[]

/** Returns the agent's name from `<agent>/<side>`. */
function agentNameOf(agentId: string): string {
  return agentId.slice(0, agentId.lastIndexOf('/'))
}

function withThread(
  { id: threadId }: ThreadInfo,
  message: UIMessage,
  isChecking: (agent: string) => boolean,
): UIMessage {
  if (message.role !== 'assistant') return message
  const metadata = message.metadata as { threadprotocol: { turns: Turns } }
  const isGoverned = metadata.threadprotocol.turns.some(({ agent_id: agentId }) =>
    isChecking(agentNameOf(agentId)),
  )
  const skein = isGoverned
    ? {
        threadId,
        isVerified: message.parts.some(
          (part) =>
            part.type === 'data-gate' &&
            isDelivered({ type: 'custom_event', at: '', name: 'gate', data: part['data'] }),
        ),
      }
    : { threadId }
  return { ...message, metadata: { ...metadata, skein } }
}

/** Adds the approvals that are currently asked for to the calls of the last message. */
function withChunks(
  messages: readonly UIMessage[],
  chunks: readonly UIMessageChunk[],
): readonly UIMessage[] {
  const last = messages.at(-1)
  if (last?.role !== 'assistant') return messages
  const parts = last.parts.map((part) => {
    const asked = chunks.find(
      (chunk) =>
        chunk.type === 'tool-approval-request' &&
        'toolCallId' in part &&
        part.toolCallId === chunk.toolCallId,
    )
    if (asked?.type !== 'tool-approval-request') return part
    const approval = { id: asked.approvalId, requestReason: asked.reason }
    // `useChat` sets the same fields when it receives the request.
    return { ...part, state: 'approval-requested', approval } as UIMessage['parts'][number]
  })
  return [...messages.slice(0, -1), { ...last, parts }]
}
