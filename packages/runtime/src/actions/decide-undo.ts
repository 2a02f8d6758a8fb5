import { canonicalJson, sha256Hex } from '@skein/base'
import type { DrainContext } from '../context/drain-context.ts'
import type { OpenInterrupt } from '../state/kernel-state.ts'
import type { RuntimeEvent } from '../contract/event.ts'
import { findDelegate } from '../governance/delegates.ts'
import { uuidFrom } from '../governance/session-identity.ts'
import { undoneEvents } from '../session/failed-writes.ts'
import { governedSession } from '../calls/session-governor.ts'

/**
 * Carries out a person's answer about a write that was left when its session failed. A write in doubt that has taken
 * effect is undone now; other answers only close the question.
 */
export async function decideUndo(context: DrainContext, interruptId: string): Promise<void> {
  const open = context.state.interrupts.get(interruptId)
  if (!open?.write) return
  const { write } = open
  const at = context.at()
  const finding = foundBy(open)
  if (write.status !== 'in_doubt' || finding === 'unknown') {
    const events = [{ type: 'undo_decided', at, interruptId, status: 'closed' } as const]
    return context.commit('undo_decided', { kind: 'outcome', events })
  }
  const { environment, head } = context
  const { store, registry } = environment
  const query = { store, agents: registry.agents, tree: head.rootId }
  const { requestId, call } = write
  const session = {
    ...governedSession(context),
    delegates: async () => [(await findDelegate(query, requestId)) ?? []].flat(),
  }
  const by = open.answeredBy ?? 'unknown'
  const id = uuidFrom(sha256Hex(canonicalJson([head.id, interruptId])))
  const end = await environment.governors.undoDecided(session, {
    id,
    requestId,
    call,
    found: finding,
    by,
  })
  const { status, error, writes: governance } = end
  const undone = { ...write, request_id: requestId, tool: write.toolName, status, error }
  const { own, others } = await undoneEvents(context, [undone])
  const decision: RuntimeEvent = { type: 'undo_decided', at, interruptId, status, error }
  await context.commit('undo_decided', {
    events: [...own, decision],
    others,
    governance,
    kind: 'outcome',
  })
}

function foundBy({ answer }: OpenInterrupt): 'applied' | 'absent' | 'unknown' {
  const value = answer?.type === 'result' ? answer.value : undefined
  return value === 'applied' || value === 'absent' ? value : 'unknown'
}
