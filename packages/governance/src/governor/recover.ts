import type { State } from '../contract/envelope.ts'
import { GovernanceError, reason } from '../contract/reason.ts'
import {
  type GovernedCallState,
  isClosed,
  isInDoubt,
  openReviews,
} from '../journal/governor-state.ts'
import { type FailOptions, failSafe } from './fail.ts'
import { loadOpen, reviveRequest } from './load.ts'
import type { GovernorCore } from './options.ts'
import { conflict, type GovernedRequest } from './request.ts'
import { submitSettled } from './settle.ts'
import { probeCall } from './undo.ts'
import { type Failure, toFailure } from './missing-evidence.ts'

/** A request that had not ended, after recovery found out what became of its calls, as far as it could. */
export interface Recovered {
  readonly request_id: string
  readonly task: string
  /**
   * `fail_safe` without `error` means that recovery ended the request. In any other state, continue it with
   * `resume` or end it with `cancel`; a child is continued by its parent.
   */
  readonly state: State
  /**
   * Calls whose effect is still unknown. A person has to find out whether it happened and report that
   * with `settleInDoubt`.
   */
  readonly inDoubt: readonly string[]
  /** True when the request still waits for people. */
  readonly isPending: boolean
  /**
   * Why recovery could not end the request, for example because the task class of a child is not known. The
   * next `recover` tries again.
   */
  readonly error?: GovernanceError
}

/**
 * Reads the whole log once and recovers every request that has not ended and whose task class is known.
 */
export async function recoverAll(core: GovernorCore): Promise<Recovered[]> {
  const open = (await loadOpen(core)).filter(({ state }) => core.tasks.has(state.opened.task))
  // Children are recovered before their parents, so that a parent that fails finds them ended.
  open.sort((a, b) => b.state.opened.depth - a.state.opened.depth)
  const results: Recovered[] = []
  for (const loadedState of open) {
    const request = reviveRequest(core, loadedState)
    const { state } = request
    let error: GovernanceError | undefined
    try {
      await recoverRequest(request)
    } catch (thrown) {
      // One request that cannot be recovered must not keep the others from it. A broken log concerns all.
      if (request.broken || !(thrown instanceof GovernanceError)) throw thrown
      error = thrown
    }
    results.push({
      request_id: state.request_id,
      task: state.opened.task,
      state: state.state,
      inDoubt: [...state.calls.values()].flatMap((one) =>
        one.effect === 'in_doubt' ? one.call : [],
      ),
      isPending: !isClosed(state) && openReviews(state).length > 0,
      error,
    })
  }
  return results
}

/**
 * Finds out and records what became of the calls that were running when the process of a request died. Ends
 * the request if its deadline has passed, if it was already failing, or if intake had not finished.
 */
export async function recoverRequest(
  request: GovernedRequest,
  options: FailOptions = {},
): Promise<void> {
  const { state, core } = request
  for (const call of state.state === 'execute' ? state.calls.values() : []) {
    if (isInDoubt(call)) await settleDoubt(request, call)
  }
  let failure: Failure | undefined
  const { request_id, opened, why, missing } = state
  const { deadline } = opened.limits
  if (state.state === 'fail_safe') failure = { reasons: why, missing }
  else if (state.state === 'intake')
    failure = { reasons: [reason('STATE_CONFLICT', request_id, 'intake')], missing }
  else if (deadline !== undefined && core.clock.now() >= deadline)
    failure = await toFailure(request, [reason('DEADLINE_EXCEEDED', request_id)])
  if (failure) await failSafe(request, failure, options)
}

/** Settles one call that a crash left unfinished; undefined when it is running here or its effect is known. */
export async function recoverCall(
  request: GovernedRequest,
  call: string,
): Promise<'applied' | 'absent' | 'in_doubt' | undefined> {
  const record = request.state.calls.get(call)
  const isOpen = record && isInDoubt(record) && !request.running.has(call)
  return isOpen ? settleDoubt(request, record) : undefined
}

/** Records what a person found out about a call in doubt. Throws when its effect is known. */
export async function settleByPerson(
  request: GovernedRequest,
  call: string,
  found: 'applied' | 'absent',
): Promise<void> {
  const record = request.state.calls.get(call)
  if (record?.effect !== 'in_doubt') throw conflict(request, `call ${call} is not in doubt`)
  await recordFound(request, record, found, 'person')
}

/**
 * Finds out whether a call in doubt had its effect, and records it. The tool's probe
 * decides; if it cannot, the call of an idempotent tool counts as absent, because the tool may run again with
 * the same idempotency key. Otherwise the call stays in doubt and a person has to look.
 */
async function settleDoubt(
  request: GovernedRequest,
  call: GovernedCallState,
): Promise<'applied' | 'absent' | 'in_doubt'> {
  const finding = await probeCall(request, call)
  const isKnown = finding !== 'in_doubt'
  // A tool that the task no longer has cannot be repeated.
  const mayRepeat = !isKnown && request.findTool(call.tool)?.governance.idempotent === true
  const effect = mayRepeat ? 'absent' : finding
  const by = mayRepeat ? 'idempotent' : isKnown ? 'probe' : undefined
  if (by || call.status === 'started') await recordFound(request, call, effect, by)
  return effect
}

/** Writes to the journal what was found out about a call in doubt. */
async function recordFound(
  request: GovernedRequest,
  call: GovernedCallState,
  effect: 'applied' | 'absent' | 'in_doubt',
  settled_by?: 'probe' | 'person' | 'idempotent',
): Promise<void> {
  const reasons = [reason('TOOL_IN_DOUBT', call.tool, `found ${effect}`)]
  await submitSettled(request, call, { effect, reasons, settled_by })
}
