import type { ThreadPlace } from '../context/drain-context.ts'
import type { RuntimeEvent } from '../contract/event.ts'
import type { ThreadChange } from '../store/commit.ts'

/**
 * Returns the change that writes a status text into the parent's list of subagents (Standard Agents §7.10).
 */
export function statusToParent(context: ThreadPlace, event: RuntimeEvent): ThreadChange[] {
  if (event.type !== 'status_changed' || event.text === undefined) return []
  const { session, queue } = context.state
  // An effect or an endpoint may set the status of a child that does nothing; the parent must not wait for it then.
  const status = session || queue.length > 0 ? 'running' : 'idle'
  return listedAs(context, { status, statusText: event.text })
}

/** Returns the change that writes the status of a child into the parent's list of subagents. */
export function listedAs(
  context: ThreadPlace,
  status: {
    readonly status: 'running' | 'idle' | 'awaiting_human'
    readonly statusText?: string
  },
): ThreadChange[] {
  const { state, head } = context
  if (!state.parent) return []
  const at = context.at()
  const update = { type: 'subagent_updated', at, reference: head.id, ...status } as const
  const { threadId: id } = state.parent
  const isTold = status.statusText === undefined && id !== head.rootId
  // The parent is woken if it is itself a child, because its own parent's list may have to change too.
  const wake = isTold && { wake: { by: context.environment.clock.now() } }
  return [{ id, mustBeLive: true, append: [update], ...wake }]
}
