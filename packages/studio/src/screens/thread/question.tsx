import type { ReactNode } from 'react'
import { Approval } from '../../parts/approval.tsx'
import { useStore } from '../../state/store.ts'
import { useStudio } from '../../state/studio.ts'
import { isCallOver, type ShownThread } from '../../state/tree.ts'

/** The question about a call that waits for a person, shown at the place of the call. */
export function Question({
  thread,
  toolCallId,
}: {
  readonly thread: ShownThread
  readonly toolCallId: string
}): ReactNode {
  const { lists } = useStudio()
  const inbox = useStore(lists.inbox)
  const { interrupt, answer } = thread.facts.calls.get(toolCallId) ?? {}
  const item = inbox.items.find(({ interruptId }) => interruptId === interrupt?.id)
  if (interrupt && !answer && thread.isPast)
    return <p className="decision small waits">waited for an answer at this time</p>
  if (!item || answer) return null
  return (
    <Approval
      item={item}
      evidence={thread.facts.evidence}
      verdicts={thread.facts.calls.get(toolCallId)?.verdicts}
      hasEnded={isCallOver(thread, toolCallId)}
      hasKeys={inbox.items.find(({ rootId }) => rootId === item.rootId) === item}
    />
  )
}
