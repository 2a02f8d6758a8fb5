import { callsOf } from './snapshot.ts'
import { failSafe } from './fail.ts'
import { isClosed } from './governor-state.ts'
import type { ChildData, ChildSettledData } from '../journal-event.ts'
import { reason } from '../reason.ts'
import { loadState, type GovernedRequest } from './request.ts'
import { ownersOf, reviveRequest } from './revive.ts'
import { effectsOf } from './undo.ts'

/** The parent takes over what an ended child did: its calls count, its writes are to be undone. */
export async function settleChild(
  parent: GovernedRequest,
  child: GovernedRequest,
  { child: id, request_id, trace_id, task }: ChildData,
): Promise<void> {
  const { delivered, failed } = child.state
  const data: ChildSettledData = {
    child: id,
    request_id,
    trace_id,
    task,
    calls: callsOf(child),
    effects: delivered ? effectsOf(child).reverse() : [],
    hash: delivered?.hash,
    reasons: failed?.reasons,
  }
  const outcome = delivered ? 'success' : 'failure'
  await parent.submit({ type: 'child_settled', data }, { outcome, actor: parent.agent })
}

/** Ends the children of a request that fails and that nobody runs any more. */
export async function settleChildren(parent: GovernedRequest): Promise<void> {
  for (const data of parent.state.children.values()) {
    if (data.settled) continue
    const loaded = await loadState(parent.core, data.request_id)
    // Announced, but the process died before the child wrote its first entry: it did nothing.
    if (!loaded) continue
    const child = reviveRequest(parent.core, loaded, undefined, parent)
    if (!isClosed(child.state)) {
      const reasons = [reason('CANCELLED', data.request_id, 'its parent failed')]
      await failSafe(child, { reasons, missing: [] }, ownersOf(child))
    }
    await settleChild(parent, child, data)
  }
}
