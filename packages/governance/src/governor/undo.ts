import { thrownText } from '../contract/reason.ts'
import type { Undo } from '../contract/run.ts'
import type { EffectReference, UndoData } from '../journal/events.ts'
import {
  effectKey,
  type GovernedCallState,
  isClosed,
  type UndoState,
} from '../journal/governor-state.ts'
import { probe, toolContext } from './execute.ts'
import { type LoadedState, loadState, reviveRequest } from './load.ts'
import { type Delegate, type GovernorCore, withTimeout } from './options.ts'
import { GovernedRequest } from './request.ts'
import { toAdmitted } from './admitted-call.ts'

/**
 * Undoes the writes of a request and of its delegates, the last one first. A failure is recorded and the remaining
 * writes are still undone; no abort signal stops this. A write whose undoing has already ended according to the
 * journal is reported, but not undone again.
 */
export async function undoEffects(request: GovernedRequest): Promise<Undo[]> {
  const results: Undo[] = []
  for (const write of await writesOf(request)) {
    const { reference, call, maker } = write
    if (call.effect === 'absent') continue
    const key = effectKey(reference)
    let undoEnd = request.state.undo.get(key)?.settled ?? write.earlier?.settled
    if (!undoEnd) {
      const end = maker
        ? await undoOne(request, maker, write)
        : {
            status: 'failed' as const,
            tries: 0,
            error: `"${call.tool}" is not known here any more`,
          }
      undoEnd = { ...reference, ...end }
      const { status } = end
      const outcome = status === 'done' ? 'success' : status === 'failed' ? 'failure' : 'uncertain'
      await request.submit({ type: 'undo_settled', data: undoEnd }, { outcome })
    }
    results.push(toUndo(reference, call, undoEnd))
  }
  return results
}

/** A write that has to be undone if its request fails. */
interface WriteToUndo {
  readonly reference: EffectReference
  readonly call: GovernedCallState
  /** The request that made the write, with its tools; undefined if these are not known here any more. */
  readonly maker: GovernedRequest | undefined
  /** What the request that made the write, or one between it and this one, has recorded about undoing it. */
  readonly earlier: UndoState | undefined
}

/** Returns the writes of a request and of its delegates, the last one of the journal first, each once. */
async function writesOf(request: GovernedRequest): Promise<WriteToUndo[]> {
  const { core, state } = request
  const delegates = await loadDelegates(request)
  const makers = new Map(delegates.map((one) => [one.state.request_id, one]))
  const own: WriteToUndo[] = []
  for (const reference of effectsOf(request)) {
    const delegate = makers.get(reference.request_id)
    const owner = delegate ?? (await findOwner(request, reference))
    const call = owner?.state.calls.get(reference.call)
    if (!owner || !call) continue
    const maker = delegate
      ? makerOf(core, delegate)
      : 'core' in owner
        ? owner
        : reviveRequest(core, owner)
    own.push({ reference, call, maker, earlier: undefined })
  }
  if (delegates.length === 0 || state.opened.decided) return own
  const theirs = delegates.flatMap((delegate) => {
    const { request_id: id, calls } = delegate.state
    const maker = makerOf(core, delegate)
    return effectsOf(delegate).flatMap((reference): WriteToUndo[] => {
      const call = calls.get(reference.call)
      return call && reference.request_id === id
        ? [{ reference, call, maker, earlier: recordOf(delegates, reference) }]
        : []
    })
  })
  const loadedState = await loadState(core, state.request_id)
  const places = new Map<string, number>()
  for (const { writes, state: one } of [loadedState ?? [], delegates].flat())
    for (const [call, place] of writes)
      places.set(effectKey({ request_id: one.request_id, call }), place)
  const placeOf = ({ reference }: WriteToUndo): number =>
    places.get(effectKey(reference)) ?? Number.MAX_SAFE_INTEGER
  return [...own, ...theirs].sort((a, b) => placeOf(b) - placeOf(a))
}

type LoadedDelegate = LoadedState & Pick<Delegate, 'task'>

function makerOf(core: GovernorCore, { task, state }: LoadedDelegate): GovernedRequest | undefined {
  return task && new GovernedRequest(core, task, state)
}

/** Returns what the maker of a write, or a request between it and the one that fails, has recorded about undoing it. */
function recordOf(
  delegates: readonly LoadedDelegate[],
  reference: EffectReference,
): UndoState | undefined {
  const records = delegates.flatMap(({ state }) => state.undo.get(effectKey(reference)) ?? [])
  return records.find(({ settled }) => settled) ?? records[0]
}

/** Reads the delegates of a request from the journal; those that still work are left alone. */
async function loadDelegates({
  core,
  state: { request_id },
}: GovernedRequest): Promise<readonly LoadedDelegate[]> {
  const owners: LoadedDelegate[] = []
  for (const { request_id: id, task, isActive } of await core.delegates(request_id)) {
    const loadedState = await loadState(core, id)
    if (loadedState && (isClosed(loadedState.state) || !isActive))
      owners.push({ ...loadedState, task })
  }
  return owners
}

/**
 * Returns the writes that happened or may have happened, the last one first, each once. Calls that were
 * running when the process died come before all others.
 */
export function effectsOf({ state }: Pick<GovernedRequest, 'state'>): EffectReference[] {
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
    const owner = findLive(child, requestId)
    if (owner) return owner
  }
  return undefined
}

type UndoEnd = Pick<UndoData, 'status' | 'tries' | 'error'>

/** Undoes one write of `owner` on behalf of `request`, with a bounded number of tries. */
async function undoOne(
  request: GovernedRequest,
  owner: GovernedRequest,
  { call, reference, earlier }: WriteToUndo,
): Promise<UndoEnd> {
  const { rollback } = call
  if (!rollback) return { status: 'skipped', tries: 0 }
  const { type, target } = rollback
  if (type === 'manual') return { status: 'manual', tries: 0 }
  if (type === 'impossible') return { status: 'impossible', tries: 0 }
  if (earlier || request.state.undo.has(effectKey(reference))) {
    // The process died while undoing this write. Only the probe can tell whether the undoing succeeded;
    // without a clear answer the rollback may run again only if the tool that undoes is idempotent.
    const finding = await probeCall(owner, call)
    if (finding === 'absent') return { status: 'done', tries: 0 }
    // After a deploy the task may no longer have the tool that undoes.
    const inverse = type === 'tool_call' ? owner.findTool(target) : undefined
    if (finding !== 'applied' && inverse?.governance.idempotent !== true) {
      const missingTool =
        type === 'tool_call' && !inverse ? `, and the task has no tool "${target}"` : ''
      return { status: 'unknown', tries: 0, error: `it may have run before a crash${missingTool}` }
    }
  } else {
    const effect = await findEffect(request, owner, call)
    if (effect === 'absent') return { status: 'done', tries: 0 }
    // To undo a write that did not happen could itself do harm, so a person decides.
    if (effect === 'in_doubt') return { status: 'in_doubt', tries: 0 }
    await request.submit(
      { type: 'undo_started', data: reference },
      { outcome: 'pending', rollback, durable: true },
    )
  }
  for (let tries = 1; ; tries++) {
    try {
      await runInverse(owner, call, rollback)
      return { status: 'done', tries }
    } catch (error) {
      if (tries >= request.core.limits.undoTries)
        return { status: 'failed', tries, error: thrownText(error) }
    }
  }
}

/** Returns whether a write happened: from its record, from a person's decision or, if it is in doubt, from its probe. */
async function findEffect(
  { state }: GovernedRequest,
  owner: GovernedRequest,
  call: GovernedCallState,
): Promise<'applied' | 'absent' | 'in_doubt'> {
  if (call.effect !== 'in_doubt') return 'applied'
  const { decided } = state.opened
  if (!decided) return probeCall(owner, call)
  return decided.found === 'unknown' ? 'in_doubt' : decided.found
}

function runInverse(
  owner: GovernedRequest,
  call: GovernedCallState,
  rollback: NonNullable<GovernedCallState['rollback']>,
): Promise<unknown> {
  const { timer, limits, undoers } = owner.core
  const { type, target, payload } = rollback
  const inverseCall = { ...toAdmitted(owner, call, null), tool: target }
  return withTimeout(
    async (signal) => {
      const idempotencyKey = `${inverseCall.idempotency_key}:undo`
      const context = { ...toolContext(owner, inverseCall, signal), idempotencyKey }
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
