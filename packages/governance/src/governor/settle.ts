import { canonicalJson, deepFreeze, type JsonValue } from '@skein/base'
import { hashText, type Hash } from '../contract/envelope.ts'
import { EVIDENCE_TYPES, type Evidence } from '../contract/evidence.ts'
import type { EvidenceClaim } from '../contract/governed.ts'
import { messageOf, reason, type Reason } from '../contract/reason.ts'
import type { Effect, EvidenceData, SettledData } from '../journal/events.ts'
import { timestampOf } from '../journal/journal.ts'
import type { CallState } from '../journal/reduce.ts'
import type { CallNames } from './candidate.ts'
import { conflict, type AdmittedCall, type GovernedRequest } from './request.ts'

/** How an admitted call ended. */
export type CallOutcome =
  | { readonly type: 'result'; readonly value: unknown }
  /** `effect` of a write: known to be there, known not to be there, or neither. */
  | {
      readonly type: 'error'
      readonly reasons: readonly Reason[]
      readonly effect: 'applied' | 'absent' | 'in_doubt'
    }

/** What became of a settled call: its result and the evidence, or why it failed. */
export type Settlement =
  | { readonly type: 'done'; readonly result: JsonValue; readonly evidence: Evidence }
  | { readonly type: 'failed'; readonly reasons: readonly Reason[]; readonly effect: Effect }

/** Records the end of an admitted call. This is the only place where a result becomes evidence. */
export async function settle(
  request: GovernedRequest,
  admitted: AdmittedCall,
  outcome: CallOutcome,
): Promise<Settlement> {
  const { state } = request
  const { call, tool, risk } = admitted
  if (state.state !== 'execute') {
    throw conflict(request, `call ${call} ended after the run had gone on to ${state.state}`)
  }
  const minted = outcome.type === 'error' ? outcome : mint(request, admitted, outcome.value)
  if ('reasons' in minted) {
    const { reasons } = minted
    const effect = risk === 'read_only' ? 'none' : minted.effect
    request.running.delete(call)
    await submitSettled(request, admitted, { effect, reasons })
    return { type: 'failed', reasons, effect }
  }
  const { payload, result, claim } = minted
  await request.put(payload.hash, payload.text)
  if (result !== payload) await request.put(result.hash, result.text)
  const data: EvidenceData = {
    id: `${state.request_id}#${state.seq}`,
    type: claim.type,
    hash: payload.hash,
    result_hash: result === payload ? undefined : result.hash,
    subtype: claim.subtype,
  }
  const effect = risk === 'read_only' ? 'none' : 'applied'
  const written = submitSettled(request, admitted, { effect, evidence: data })
  // The evidence has the time of its entry, so that reading it back gives the same object.
  const at = state.calls.get(call)?.evidence?.at ?? 0
  const evidence = toEvidence(request, tool, { ...data, at }, payload.value)
  request.evidence.set(call, evidence)
  request.running.delete(call)
  await written
  return { type: 'done', result: result.value, evidence }
}

/** Writes the end of a call. `settled_by` is set where the process that made the call is gone. */
export function submitSettled(
  request: GovernedRequest,
  { call, tool, risk, args_hash }: CallNames,
  rest: Pick<SettledData, 'effect' | 'evidence' | 'reasons' | 'settled_by'>,
): number | Promise<number> {
  const outcome = rest.evidence ? 'success' : rest.effect === 'in_doubt' ? 'uncertain' : 'failure'
  const actor = rest.settled_by ? request.system : request.agent
  const data = { call, tool, risk, args_hash, ...rest }
  return request.submit({ type: 'call_settled', data }, { outcome, actor })
}

/** A value with its canonical text and hash. */
interface Text {
  readonly text: string
  readonly hash: Hash
  readonly value: JsonValue
}

function toText(value: unknown): Text {
  const text = canonicalJson(value)
  return { text, hash: hashText(text), value: deepFreeze(JSON.parse(text) as JsonValue) }
}

type Minted =
  | { readonly claim: EvidenceClaim; readonly result: Text; readonly payload: Text }
  | { readonly reasons: readonly Reason[]; readonly effect: 'applied' }

/** What a call proves unless its tool declares otherwise: its result. */
const TOOL_RESULT: EvidenceClaim = { type: 'tool_result', payload: null }

/** The evidence in a tool's result, as the tool declares it, or why that cannot be evidence. */
function mint(request: GovernedRequest, { tool, args }: AdmittedCall, value: unknown): Minted {
  let problem: string
  try {
    const result = toText(value === undefined ? null : value)
    const claim = request.findTool(tool)?.governance.evidence?.(result.value, args)
    if (!claim) return { claim: TOOL_RESULT, result, payload: result }
    const { type, subtype } = claim
    if (!EVIDENCE_TYPES.includes(type)) problem = `"${type}" is not a type of evidence`
    // Approvals become evidence when they are redeemed; no tool can claim one.
    else if (type === 'approval_token') problem = 'a tool cannot mint approvals'
    else if (type === 'custom' && !/^[^:\s]+:[^\s]+$/.test(subtype ?? ''))
      problem = 'custom needs a subtype'
    else return { claim, result, payload: toText(claim.payload) }
  } catch (error) {
    problem = messageOf(error)
  }
  return { reasons: [reason('EVIDENCE_INVALID', tool, problem)], effect: 'applied' }
}

/** The evidence of a settled call, from its record and its payload. */
export async function evidenceOf(request: GovernedRequest, call: CallState): Promise<Evidence> {
  const known = request.evidence.get(call.call)
  if (known) return known
  if (!call.evidence) throw conflict(request, `call ${call.call} left no evidence`)
  const payload = await request.fetch(call.evidence.hash)
  const evidence = toEvidence(request, call.tool, call.evidence, payload)
  request.evidence.set(call.call, evidence)
  return evidence
}

function toEvidence(
  { state }: Pick<GovernedRequest, 'state'>,
  tool: string,
  data: EvidenceData & { readonly at: number },
  payload: JsonValue,
  actor = `tool:${tool}`,
): Evidence {
  return Object.freeze({
    evidence_id: data.id,
    evidence_type: data.type,
    source: tool,
    collected_at: timestampOf(data.at),
    hash: data.hash,
    payload,
    actor,
    request_id: state.request_id,
    trace_id: state.trace_id,
    // Left out, not undefined: what validates an evidence object looks at its members.
    ...(state.parent_trace_id !== undefined && { parent_trace_id: state.parent_trace_id }),
    ...(data.subtype !== undefined && { 'uaicp:subtype': data.subtype }),
  })
}

/** Redeemed approvals of calls that succeeded, as evidence. What they say is in the log itself. */
export function approvalEvidence({ state }: GovernedRequest): Evidence[] {
  const minted: Evidence[] = []
  for (const { answer, tool, digest, call } of state.reviews.values()) {
    if (answer?.answer !== 'approved' || state.calls.get(call)?.status !== 'done') continue
    const { approvers = [], tokens = [], seq, at } = answer
    const { hash, value } = toText({ digest, approvers, tokens })
    const id = `${state.request_id}#${seq}`
    const [first] = approvers
    const actor = first && `${first.type}:${first.id}`
    minted.push(toEvidence({ state }, tool, { id, type: 'approval_token', hash, at }, value, actor))
  }
  return minted
}
