import type { ThreadIdentity } from '../../operations/thread-identity.ts'
import type { Runtime, WaitingItem } from '@skein/runtime'
import type { UIMessageChunk } from '@skein/threads/ai-sdk'
import { reasonOf, type ChatView } from './chat-view.ts'

/**
 * Returns the approvals that descendants wait for, each shown on the call that created the child, because the
 * page has that call. A call can show one approval at a time; the next one follows when it is answered.
 */
export async function approvalsBelow(
  runtime: Runtime,
  thread: ThreadIdentity,
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
      reason: reasonOf(
        `${item.path.join(' › ')}: ${item.toolName}(${JSON.stringify(item.arguments)})`,
        item.isIrreversible,
      ),
    })
  }
  return [...chunks.values()]
}

/** Returns the direct child of an ancestor that is the given descendant or leads down to it. */
export async function childOn(
  runtime: Runtime,
  ancestorId: string,
  threadId: string,
): Promise<string | undefined> {
  for (let id = threadId; ;) {
    const { parentId } = await runtime.threads.head(id)
    if (parentId === ancestorId) return id
    if (parentId === null) return undefined
    id = parentId
  }
}
