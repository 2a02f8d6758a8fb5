import type { ThreadIdentity } from '../../operations/thread-identity.ts'
import { toUIMessages, type UIMessage, type UIMessageChunk } from '@skein/threads/ai-sdk'
import { threadFromEvents } from '@skein/threads/events'
import type { Runtime } from '@skein/runtime'
import { approvalsBelow } from './approvals-below.ts'
import { isChecked, isGovernedAgent, ShownEvents } from './shown-events.ts'
import { isDelivered } from './hold-back.ts'

/**
 * Returns the messages that a page needs when it opens a chat: the same messages that the page would have
 * built from its own streams. `seq` is the number of the last event that they contain.
 */
export async function chatHistory(
  runtime: Runtime,
  thread: ThreadIdentity,
  options: { readonly hold: boolean },
): Promise<{ readonly messages: readonly UIMessage[]; readonly seq: number }> {
  const view = new ShownEvents(runtime.registry, options)
  const log = await runtime.threads.events(thread.id)
  const events = [...log.flatMap(({ event }) => view.push(event)), ...view.end()]
  const document = threadFromEvents(events, { includeRunning: true }).value
  const decisionIds = new Set(
    log.flatMap(({ event }) =>
      isChecked(event) && 'agentId' in event ? agentNameOf(event.agentId ?? '') : [],
    ),
  )
  const isGoverned = (agent: string): boolean =>
    decisionIds.has(agent) || isGovernedAgent(runtime.registry, agent)
  const messages = toUIMessages(document).map((message) => withThread(thread, message, isGoverned))
  const waiting =
    thread.lifecycle === 'waiting'
      ? await runtime.inbox.list({ tenant: thread.tenant, rootId: thread.rootId })
      : []
  const chunks = await approvalsBelow(runtime, thread, waiting, view.view)
  const seq = log.at(-1)?.seq ?? 0
  return { messages: chunks.length === 0 ? messages : withChunks(messages, chunks), seq }
}

type Turns = readonly { readonly agent_id: string }[]

/** Returns the agent's name from `<agent>/<side>`. */
function agentNameOf(agentId: string): string {
  return agentId.slice(0, agentId.lastIndexOf('/'))
}

function withThread(
  { id: threadId }: ThreadIdentity,
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
    const questionChunk = chunks.find(
      (chunk) =>
        chunk.type === 'tool-approval-request' &&
        'toolCallId' in part &&
        part.toolCallId === chunk.toolCallId,
    )
    if (questionChunk?.type !== 'tool-approval-request') return part
    const approval = { id: questionChunk.approvalId, requestReason: questionChunk.reason }
    // `useChat` sets the same fields when it receives the request.
    return { ...part, state: 'approval-requested', approval } as UIMessage['parts'][number]
  })
  return [...messages.slice(0, -1), { ...last, parts }]
}
