import { thrownText } from '../contract/reason.ts'
import type { Undo } from '../contract/run.ts'
import type { EffectReference, UndoData } from '../journal/events.ts'
import { effectKey } from '../journal/reduce.ts'
import { type GovernedCallState } from '../journal/journal.ts'
import { toolContext, probe } from './execute.ts'
import { type LoadedState, loadState, reviveRequest } from './open.ts'
import { withTimeout } from './options.ts'
import { type GovernedRequest } from './request.ts'
import { toAdmitted } from './candidate.ts'

/**
 * Undoes the writes of a request, the last one first. A failure is recorded and the remaining writes are
 * still undone; no abort signal stops this. A write whose undoing has already ended according to the
 * journal is reported, but not undone again.
 */
export async function undoEffects(request: GovernedRequest): Promise<Undo[]> {
  const done: Undo[] = []
  for (const reference of effectsOf(request)) {
    const owner = await findOwner(request, reference)
    const call = owner?.state.calls.get(reference.call)
    if (!owner || !call || call.effect === 'absent') continue
    let settled = request.state.undo.get(effectKey(reference))?.settled
    if (!settled) {
      const maker = 'core' in owner ? owner : reviveRequest(request.core, owner)
      const end = await undoOne(request, maker, call, reference)
      settled = { ...reference, ...end }
      const { status } = end
      const outcome = status === 'done' ? 'success' : status === 'failed' ? 'failure' : 'uncertain'
      await request.submit({ type: 'undo_settled', data: settled }, { outcome })
    }
    done.push(toUndo(reference, call, settled))
  }
  return done
}

/**
 * Returns the writes that happened or may have happened, the last one first, each once. Calls that were
 * running when the process died come before all others.
 */
export function effectsOf({ state }: GovernedRequest): EffectReference[] {
  const open = [...state.calls.values()]
    .filter(({ status }) => status === 'started')
    .map(({ call }) => ({ request_id: state.request_id, call }))
  const latestFirst = [...state.effects, ...open].reverse()
  return [...new Map(latestFirst.map((one) => [effectKey(one), one])).values()]
}

/**
 * Returns the request that made a write: this request or one of its children, or only its state from the
 * journal, because its task class may not be known here.
 */
export async function findOwner(
  request: GovernedRequest,
  { request_id }: EffectReference,
): Promise<GovernedRequest | LoadedState | undefined> {
  return findLive(request, request_id) ?? loadState(request.core, request_id)
}

/** Returns this request or one of its descendants in this process; undefined if none has the id. */
export function findLive(request: GovernedRequest, requestId: string): GovernedRequest | undefined {
  if (requestId === request.state.request_id) return request
  for (const child of request.children.values()) {
    const found = findLive(child, requestId)
    if (found) return found
  }
  return undefined
}

type UndoEnd = Pick<UndoData, 'status' | 'tries' | 'error'>

/** Undoes one write of `owner` on behalf of `request`, with a bounded number of tries. */
async function undoOne(
  request: GovernedRequest,
  owner: GovernedRequest,
  call: GovernedCallState,
  reference: EffectReference,
): Promise<UndoEnd> {
  const { rollback } = call
  if (!rollback) return { status: 'skipped', tries: 0 }
  const { type, target } = rollback
  if (type === 'manual') return { status: 'manual', tries: 0 }
  if (type === 'impossible') return { status: 'impossible', tries: 0 }
  if (request.state.undo.has(effectKey(reference))) {
    // The process died while undoing this write. Only the probe can tell whether the undoing succeeded;
    // without a clear answer the rollback may run again only if the tool that undoes is idempotent.
    const found = await probeCall(owner, call)
    if (found === 'absent') return { status: 'done', tries: 0 }
    // After a deploy the task may no longer have the tool that undoes.
    const inverse = type === 'tool_call' ? owner.findTool(target) : undefined
    if (found !== 'applied' && inverse?.governance.idempotent !== true) {
      const gone = type === 'tool_call' && !inverse ? `, and the task has no tool "${target}"` : ''
      return { status: 'unknown', tries: 0, error: `it may have run before a crash${gone}` }
    }
  } else {
    await request.submit(
      { type: 'undo_started', data: reference },
      { outcome: 'pending', rollback, durable: true },
    )
  }
  for (let tries = 1; ; tries++) {
    try {
      await runInverse(owner, call, rollback)
      // If it was unknown (in doubt) whether the write happened, a rollback without an error proves nothing:
      // only the probe can confirm that no effect is left.
      const isClear = call.effect !== 'in_doubt' || (await probeCall(owner, call)) === 'absent'
      return { status: isClear ? 'done' : 'unknown', tries }
    } catch (error) {
      if (tries >= request.core.limits.undoTries)
        return { status: 'failed', tries, error: thrownText(error) }
    }
  }
}

function runInverse(
  owner: GovernedRequest,
  call: GovernedCallState,
  rollback: NonNullable<GovernedCallState['rollback']>,
): Promise<unknown> {
  const { timer, limits, undoers } = owner.core
  const { type, target, payload } = rollback
  const admitted = { ...toAdmitted(owner, call, null), tool: target }
  return withTimeout(
    async (signal) => {
      const idempotencyKey = `${admitted.idempotency_key}:undo`
      const context = { ...toolContext(owner, admitted, signal), idempotencyKey }
      if (type !== 'tool_call') {
        const undo = Object.hasOwn(undoers, type) ? undoers[type] : undefined
        if (!undo) throw new Error(`This governor has no function that undoes "${type}".`)
        return undo(rollback, context)
      }
      const run = owner.getTool(target).tool.run as (args: unknown, context: unknown) => unknown
      return run(payload, context)
    },
    limits.undoTimeoutMs,
    timer,
  )
}

/** Asks the tool's probe whether a recorded call had its effect. Returns `in_doubt` if that cannot be found out. */
export async function probeCall(
  owner: GovernedRequest,
  call: GovernedCallState,
): Promise<'applied' | 'absent' | 'in_doubt'> {
  try {
    const args = await owner.fetch(call.args_hash)
    return await probe(owner, toAdmitted(owner, call, args), owner.getTool(call.tool))
  } catch {
    // The arguments were erased, or the task no longer has the tool.
    return 'in_doubt'
  }
}

/** Builds the entry for one write in the `undo` list of a result. */
export function toUndo(
  { request_id, call }: EffectReference,
  known: GovernedCallState | undefined,
  { status, error }: Pick<UndoData, 'status' | 'error'>,
): Undo {
  const tool = known?.tool ?? 'unknown'
  return { request_id, call, tool, action: known?.rollback, status, error }
}
