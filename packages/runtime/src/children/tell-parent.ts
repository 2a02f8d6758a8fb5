import { awaitedChildren } from './awaited-children.ts'
import type { DrainContext } from '../context/drain-context.ts'
import type { KernelState } from '../state/kernel-state.ts'
import { openForPeople } from '../state/questions.ts'
import { listedAs } from '../thread/parent-list.ts'
import type { ThreadChange } from '../store/commit.ts'

/**
 * Checks whether the parent's list of children says correctly whether this child waits for a person.
 * Returns the change that corrects the list, if one is needed, and the field of `status_changed` that
 * records what the list then says.
 */
export function toldToParent(context: DrainContext): {
  readonly others: readonly ThreadChange[]
  readonly field: { readonly awaitsPerson?: true }
} {
  const { state } = context
  const isAwaiting =
    state.parent !== undefined &&
    state.session !== undefined &&
    (openForPeople(state).some(({ isDetached }) => !isDetached) || waitsBelow(state))
  const field = isAwaiting ? ({ awaitsPerson: true } as const) : {}
  // Outside a session nothing is corrected: the end of a session is reported to the parent separately.
  if (isAwaiting === state.isToldAwaiting || !state.session) return { others: [], field }
  return { others: listedAs(context, { status: isAwaiting ? 'awaiting_human' : 'running' }), field }
}

/** Whether a call of the thread waits for a child that, itself or through its own children, waits for a person. */
function waitsBelow(state: KernelState): boolean {
  return awaitedChildren(state).some(
    (reference) => state.children.get(reference)?.lifecycle === 'awaiting_human',
  )
}

/** Corrects the parent's list if it still says that this child waits for a person; returns whether it did. */
export async function tellParent(context: DrainContext): Promise<boolean> {
  const { state } = context
  if (!state.isToldAwaiting) return false
  const { others } = toldToParent(context)
  if (others.length === 0) return false
  const events = [{ type: 'status_changed', at: context.at(), status: 'running' } as const]
  await context.commit('tell', { events, others, head: { lifecycle: 'running' } })
  return true
}

/** Returns the field of a `status_changed` event that repeats what the parent knows: whether a person is awaited. */
export function asTold({ isToldAwaiting }: KernelState): { readonly awaitsPerson?: true } {
  return isToldAwaiting ? { awaitsPerson: true } : {}
}
