import type { ThreadEvent } from '@skein/threads'
import { threadFromEvents } from '@skein/threads/events'
import { toUIMessages, type UIMessage, type UIMessageChunk } from '@skein/threads/ai-sdk'
import type { Runtime } from '../../runtime-api.ts'
import type { ThreadHead } from '../../store/store.ts'
import { isDelivered } from './hold-back.ts'
import { approvalsBelow } from './nested-approvals.ts'
import { isGovernedAgent, ShownEvents } from './shown-events.ts'

/** The messages of a chat as a page needs them when it opens: what its own streams would have made of it. */
export async function chatHistory(
  runtime: Runtime,
  thread: ThreadHead,
  options: { readonly hold: boolean },
): Promise<readonly UIMessage[]> {
  const shown = new ShownEvents(runtime.registry, options)
  const stored = await runtime.threads.events(thread.id)
  const events = [...stored.flatMap(({ event }) => shown.push(event)), ...shown.end()]
  const document = threadFromEvents(events, { includeRunning: true }).value
  const messages = toUIMessages(document).map((message) => withThread(runtime, thread, message))
  const waiting =
    thread.lifecycle === 'waiting' && thread.waiting === 0
      ? await runtime.inbox.list({ tenant: thread.tenant, rootId: thread.rootId })
      : []
  const chunks = await approvalsBelow(runtime, thread, waiting, shown.view)
  return chunks.length === 0 ? messages : withChunks(messages, chunks)
}

type Turns = readonly { readonly agent_id: string }[]

function withThread(runtime: Runtime, { id: threadId }: ThreadHead, message: UIMessage): UIMessage {
  if (message.role !== 'assistant') return message
  const metadata = message.metadata as { threadprotocol: { turns: Turns } }
  const isGoverned = metadata.threadprotocol.turns.some(({ agent_id: agentId }) =>
    isGovernedAgent(runtime.registry, agentId.slice(0, agentId.lastIndexOf('/'))),
  )
  const skein = { threadId, ...(isGoverned && { isVerified: message.parts.some(isVerdict) }) }
  return { ...message, metadata: { ...metadata, skein } }
}

function isVerdict(part: UIMessage['parts'][number]): boolean {
  if (part.type !== 'data-gate') return false
  const { data } = part as { data: unknown }
  return isDelivered({ type: 'custom_event', at: '', name: 'gate', data } satisfies ThreadEvent)
}

/** The last message with what was asked of it since. */
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
    return { ...part, state: 'approval-requested', approval } as UIMessage['parts'][number] // as the client does
  })
  return [...messages.slice(0, -1), { ...last, parts }]
}
