import { coreOf } from './execute.ts'
import { failSafe } from './fail.ts'
import type { GovernorCore } from './options.ts'
import {
  type CallState,
  type GovernorState,
  isClosed,
  isInDoubt,
  openReviews,
} from '../journal/state.ts'
import { identityOf, readItem } from '../journal/journal.ts'
import { reason, type Reason } from '../contract/reason.ts'
import { openState, reduceJournal } from '../journal/reduce.ts'
import type { GovernedRequest, LoadedState } from './request.ts'
import { ownersOf, reviveRequest } from './revive.ts'
import { submitSettled } from './settle.ts'
import { probeCall } from './undo.ts'
import type { State } from '../contract/envelope.ts'

/** A request that had not ended, after what could be settled was. */
export interface Recovered {
  readonly request_id: string
  readonly task: string
  /** `fail_safe`: it was ended here. Otherwise go on with `resume`, or `cancel` it. */
  readonly state: State
  /** Calls whose effect nobody could tell; a person has to, through `settleInDoubt`. */
  readonly inDoubt: readonly string[]
  /** It waits for people, as before. */
  readonly isPending: boolean
}

/** Reads the whole log once and settles what a crash left open. Call it once at start-up. */
export async function recoverAll(core: GovernorCore): Promise<Recovered[]> {
  const open = (await loadOpen(core)).filter(({ state }) => core.tasks.has(state.opened.task))
  const recovered: Recovered[] = []
  // Children first: a parent that fails then finds them settled.
  open.sort((a, b) => b.state.opened.depth - a.state.opened.depth)
  for (const loaded of open) {
    const request = reviveRequest(core, loaded)
    recovered.push(await recoverRequest(request))
  }
  return recovered
}

/** Settles the calls of one request that were running when its process died, and ends what must. */
export async function recoverRequest(request: GovernedRequest): Promise<Recovered> {
  await settleDoubts(request)
  const { state, core } = request
  const { deadline } = state.opened.limits
  const isLate = deadline !== undefined && core.clock.now() >= deadline
  const why = await findEnd(request, isLate)
  if (why) await failSafe(request, { reasons: why, missing: [] }, ownersOf(request))
  return {
    request_id: state.request_id,
    task: state.opened.task,
    state: state.state,
    inDoubt: [...state.calls.values()]
      .filter(({ effect }) => effect === 'in_doubt')
      .map(({ call }) => call),
    isPending: !isClosed(state) && openReviews(state).length > 0,
  }
}

/** Why the request has to end here; undefined when it can be resumed. */
async function findEnd(
  { state }: GovernedRequest,
  isLate: boolean,
): Promise<readonly Reason[] | undefined> {
  if (isClosed(state)) return undefined
  if (state.state === 'fail_safe') return state.why
  if (state.state === 'intake') return [reason('STATE_CONFLICT', state.request_id, 'intake')]
  return isLate ? [reason('DEADLINE_EXCEEDED', state.request_id)] : undefined
}

/** Probe if there is one, run again if idempotent, else leave it to a person. */
async function settleDoubts(request: GovernedRequest): Promise<void> {
  if (request.state.state !== 'execute') return
  for (const call of request.state.calls.values()) {
    if (isInDoubt(call)) await settleDoubt(request, call)
  }
}

/** Settles one call in doubt, and says as what. */
export async function settleDoubt(
  request: GovernedRequest,
  call: CallState,
): Promise<'applied' | 'absent' | 'in_doubt'> {
  const found = await probeCall(request, call)
  const isKnown = found !== 'in_doubt'
  // To run it again with the same key has one effect; as good as not there.
  const mayRepeat = !isKnown && coreOf(request, call.tool).governance.idempotent
  const effect = mayRepeat ? 'absent' : found
  const by = mayRepeat ? 'idempotent' : isKnown ? 'probe' : undefined
  if (by || call.status === 'started') await record(request, call, effect, by)
  return effect
}

/** Writes how an effect in doubt was settled. */
export async function record(
  request: GovernedRequest,
  call: CallState,
  effect: 'applied' | 'absent' | 'in_doubt',
  settled_by?: 'probe' | 'person' | 'idempotent',
): Promise<void> {
  const reasons = [reason('TOOL_IN_DOUBT', call.tool, `found ${effect}`)]
  await submitSettled(request, call, { effect, reasons, settled_by })
}

async function loadOpen(core: GovernorCore): Promise<LoadedState[]> {
  const states = new Map<string, { state: GovernorState; first: number; last: number }>()
  for await (const record of core.audit.read()) {
    const item = readItem(record)
    const known = states.get(item.request_id)
    if (known) {
      reduceJournal(known.state, item)
      known.last = record.index
      // What has ended is not kept: memory follows the open requests, not the log.
      if (isClosed(known.state)) states.delete(item.request_id)
    } else if (item.type === 'opened') {
      const state = openState(item, identityOf(record.envelope))
      states.set(item.request_id, { state, first: record.index, last: record.index })
    }
  }
  return [...states.values()]
}
