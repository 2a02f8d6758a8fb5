import type { JsonValue } from '@skein/base'
import type { Reason } from '../contract/reason.ts'
import { conflict, type GovernedRequest } from './request.ts'
import type { Evidence } from '../contract/evidence.ts'
import type { EvidenceData, RecordedEffect, SettledData } from '../journal/events.ts'
import { type CallNames, namesOf } from './call-names.ts'
import type { AdmittedCall } from './admitted-call.ts'
import { mint, toEvidence } from './evidence.ts'

/** How an admitted call ended. */
export type GovernedOutcome =
  | { readonly type: 'result'; readonly value: unknown }
  /** `effect` says whether a write happened: `applied`, `absent`, or `in_doubt` when neither is certain. */
  | {
      readonly type: 'error'
      readonly reasons: readonly Reason[]
      readonly effect: 'applied' | 'absent' | 'in_doubt'
    }

/** The recorded outcome of a call: its result and the evidence, or why it failed. */
export type Settlement =
  | { readonly type: 'done'; readonly result: JsonValue; readonly evidence: Evidence }
  | {
      readonly type: 'failed'
      readonly reasons: readonly Reason[]
      readonly effect: RecordedEffect
    }

/** Records the end of a call that was allowed. Only here a result becomes evidence. */
export async function settle(
  request: GovernedRequest,
  admitted: AdmittedCall,
  outcome: GovernedOutcome,
): Promise<Settlement> {
  const { state } = request
  const { call, tool, risk } = admitted
  if (state.state !== 'execute') {
    throw conflict(request, `call ${call} ended after the run had gone on to ${state.state}`)
  }
  const newEvidence = outcome.type === 'error' ? outcome : mint(request, admitted, outcome.value)
  if ('reasons' in newEvidence) {
    const { reasons } = newEvidence
    const effect = risk === 'read_only' ? 'none' : newEvidence.effect
    request.running.delete(call)
    await submitSettled(request, admitted, { effect, reasons })
    return { type: 'failed', reasons, effect }
  }
  const { payload, result, claim } = newEvidence
  // Awaited only if the store returns a promise, so that a synchronous store costs no turn of the event loop.
  const writing = request.put(payload.hash, payload.text)
  if (writing) await writing
  if (result !== payload) await request.put(result.hash, result.text)
  const data: EvidenceData = {
    id: `${state.request_id}#${state.seq}`,
    type: claim.type,
    hash: payload.hash,
    result_hash: result === payload ? undefined : result.hash,
    subtype: claim.subtype,
  }
  const effect = risk === 'read_only' ? 'none' : 'applied'
  const entry = submitSettled(request, admitted, { effect, evidence: data })
  // The evidence gets the time of its journal entry, so that it is the same object when it is read back
  // later.
  const at = state.calls.get(call)?.evidence?.at ?? 0
  const evidence = toEvidence(request, tool, { ...data, at }, payload.value)
  request.evidence.set(call, evidence)
  request.running.delete(call)
  if (typeof entry !== 'number') await entry
  return { type: 'done', result: result.value, evidence }
}

/**
 * Writes the entry that ends a call. `settled_by` is set when the outcome was only found out later: by a
 * probe, by a person, or because an idempotent tool may simply run again.
 */
export function submitSettled(
  request: GovernedRequest,
  names: CallNames,
  rest: Pick<SettledData, 'effect' | 'evidence' | 'reasons' | 'settled_by'>,
): number | Promise<number> {
  const outcome = rest.evidence ? 'success' : rest.effect === 'in_doubt' ? 'uncertain' : 'failure'
  const actor = rest.settled_by ? request.system : request.agent
  const data = { ...namesOf(names), ...rest }
  return request.submit({ type: 'call_settled', data }, { outcome, actor })
}
