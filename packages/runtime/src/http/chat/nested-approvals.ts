import type { UIMessageChunk } from '@skein/threads/ai-sdk'
import type { Runtime, WaitingItem } from '../../runtime-api.ts'
import type { ThreadHead } from '../../store/store.ts'
import type { ChatView } from './chat-view.ts'

/**
 * Approvals that children wait for, each shown on the call that made the child: that is the one the
 * page has. One call can ask one question at a time; the next comes when it is answered.
 */
export async function approvalsBelow(
  runtime: Runtime,
  thread: ThreadHead,
  waiting: readonly WaitingItem[],
  view: ChatView,
): Promise<readonly UIMessageChunk[]> {
  const chunks = new Map<string, UIMessageChunk>()
  for (const item of waiting) {
    if (item.kind !== 'approval' || item.threadId === thread.id) continue
    const child = await childOn(runtime, thread.id, item.threadId)
    const toolCallId = child === undefined ? undefined : view.callOfChild.get(child)
    if (toolCallId === undefined || chunks.has(toolCallId)) continue
    chunks.set(toolCallId, {
      type: 'tool-approval-request',
      approvalId: item.interruptId,
      toolCallId,
      reason: `${item.path.join(' › ')}: ${item.toolName}(${JSON.stringify(item.arguments)})`,
    })
  }
  return [...chunks.values()]
}

/** The child of a thread on the way down to a descendant. */
async function childOn(
  runtime: Runtime,
  ancestorId: string,
  threadId: string,
): Promise<string | undefined> {
  for (let id = threadId; ;) {
    const { parentId } = await runtime.threads.get(id)
    if (parentId === ancestorId) return id
    if (parentId === null) return undefined
    id = parentId
  }
}
