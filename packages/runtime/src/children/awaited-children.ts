import type { DrainContext } from '../context/drain-context.ts'
import type { KernelState } from '../state/kernel-state.ts'
import type { ThreadChange } from '../store/commit.ts'

/**
 * Returns the changes that stop the running children for which a call of this thread waits, because nobody
 * will read their results.
 */
export function stopAwaited(context: DrainContext): ThreadChange[] {
  const { state, environment } = context
  const at = context.at()
  return awaitedChildren(state).flatMap((id) => {
    const lifecycle = state.children.get(id)?.lifecycle
    if (lifecycle !== 'running' && lifecycle !== 'awaiting_human') return []
    const append = [{ type: 'stop_requested', at } as const]
    return [{ id, append, wake: { by: environment.clock.now() } }]
  })
}

/** Returns the children for whose results calls of the thread wait. */
export function awaitedChildren({ interrupts }: KernelState): readonly string[] {
  return [...interrupts.values()].flatMap(({ interrupt: { kind, request }, answer }) =>
    kind !== 'child' || answer
      ? []
      : [String((request as { readonly reference?: unknown } | null)?.reference)],
  )
}
