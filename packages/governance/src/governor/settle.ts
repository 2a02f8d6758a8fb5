import { canonicalJson, deepFreeze, type JsonValue } from '@skein/base'
import { hashText } from '../contract/envelope.ts'
import { EVIDENCE_TYPES, type Evidence } from '../contract/evidence.ts'
import { toolCore, type EvidenceClaim, type ToolCore } from '../contract/governed.ts'
import type { CallState } from '../journal/state.ts'
import type { Effect, EvidenceData, SettledData } from '../journal/events.ts'
import { timestampOf } from '../journal/journal.ts'
import { messageOf, reason, type Reason } from '../contract/reason.ts'
import { conflict, type AdmittedCall, type GovernedRequest } from './request.ts'

/** What came of an admitted call. */
export type CallOutcome =
  | { readonly type: 'result'; readonly value: unknown }
  /** `effect` of a write: is it known to be there, known not to be, or neither? */
  | {
      readonly type: 'error'
      readonly reasons: readonly Reason[]
      readonly effect: 'applied' | 'absent' | 'in_doubt'
    }

export type Settlement =
  | { readonly type: 'done'; readonly result: JsonValue; readonly evidence: Evidence }
  | { readonly type: 'failed'; readonly reasons: readonly Reason[]; readonly effect: Effect }

/** Records the end of an admitted call. A result becomes evidence here, and nowhere else. */
export async function settle(
  request: GovernedRequest,
  call: AdmittedCall,
  outcome: CallOutcome,
): Promise<Settlement> {
  const { state } = request
  if (state.state !== 'execute') {
    throw conflict(request, `call ${call.call} ended after the run had gone on to ${state.state}`)
  }
  if (outcome.type === 'error') return settleError(request, call, outcome)
  const minted = mint(request, call, outcome.value)
  if ('reasons' in minted) {
    return settleError(request, call, { type: 'error', reasons: minted.reasons, effect: 'applied' })
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
  const written = submitSettled(request, call, { effect: effectOf(call), evidence: data })
  // The time is the entry's, so that a replay mints the same object.
  const at = state.calls.get(call.call)?.evidence?.at ?? 0
  const evidence = toEvidence(request, call.tool, { ...data, at }, payload.value)
  request.evidence.set(call.call, evidence)
  request.running.delete(call.call)
  await written
  return { type: 'done', result: result.value, evidence }
}

async function settleError(
  request: GovernedRequest,
  call: AdmittedCall,
  { reasons, effect: claimed }: CallOutcome & { readonly type: 'error' },
): Promise<Settlement> {
  const effect = call.risk === 'read_only' ? 'none' : claimed
  request.running.delete(call.call)
  await submitSettled(request, call, { effect, reasons })
  return { type: 'failed', reasons, effect }
}

/** Writes the end of a call. `settled_by` is set where it comes after the process that made the call. */
export function submitSettled(
  request: GovernedRequest,
  { call, tool, risk, args_hash }: Pick<AdmittedCall, 'call' | 'tool' | 'risk' | 'args_hash'>,
  rest: Pick<SettledData, 'effect' | 'evidence' | 'reasons' | 'settled_by'>,
): number | Promise<number> {
  const outcome = rest.evidence ? 'success' : rest.effect === 'in_doubt' ? 'uncertain' : 'failure'
  const actor = rest.settled_by ? request.system : request.agent
  const data = { call, tool, risk, args_hash, ...rest }
  return request.submit({ type: 'call_settled', data }, { outcome, actor })
}

function effectOf({ risk }: AdmittedCall): Effect {
  return risk === 'read_only' ? 'none' : 'applied'
}

interface Text {
  readonly text: string
  readonly hash: EvidenceData['hash']
  readonly value: JsonValue
}

interface Minted {
  readonly claim: EvidenceClaim
  readonly result: Text
  readonly payload: Text
}

/** What a call proves unless its tool says otherwise: its result. */
const TOOL_RESULT: EvidenceClaim = { type: 'tool_result', payload: null }

/** Evidence from a tool's result, by what the tool declared; reasons where that is none. */
function mint(
  request: GovernedRequest,
  call: AdmittedCall,
  value: unknown,
): Minted | { readonly reasons: readonly Reason[] } {
  try {
    const result = toText(value === undefined ? null : value)
    const claim = claimOf(request, call, result.value)
    const problem = claim && findClaimProblem(claim)
    if (problem) return { reasons: [reason('EVIDENCE_INVALID', call.tool, problem)] }
    if (!claim) return { claim: TOOL_RESULT, result, payload: result }
    return { claim, result, payload: toText(claim.payload) }
  } catch (error) {
    return { reasons: [reason('EVIDENCE_INVALID', call.tool, messageOf(error))] }
  }
}

function claimOf(
  request: GovernedRequest,
  { tool: name, args }: AdmittedCall,
  result: JsonValue,
): EvidenceClaim | undefined {
  const tool = request.task.tools.find((one) => one.name === name)
  const core: ToolCore | undefined = tool && toolCore(tool)
  return core?.governance.evidence?.(result, args)
}

/** Approvals become evidence when they are redeemed; no tool can claim one. */
function findClaimProblem({ type, subtype }: EvidenceClaim): string | undefined {
  if (!EVIDENCE_TYPES.includes(type)) return `"${type}" is not a type of evidence`
  if (type === 'approval_token') return 'a tool cannot mint approvals'
  if (type === 'custom' && !/^[^:\s]+:[^\s]+$/.test(subtype ?? '')) return 'custom needs a subtype'
  return undefined
}

function toText(value: unknown): Text {
  const text = canonicalJson(value)
  return { text, hash: hashText(text), value: deepFreeze(JSON.parse(text) as JsonValue) }
}

/** The evidence of a call that was settled before, from its record and its payload. */
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
  { state }: GovernedRequest,
  tool: string,
  data: EvidenceData & { readonly at: number },
  payload: JsonValue,
): Evidence {
  return Object.freeze({
    evidence_id: data.id,
    evidence_type: data.type,
    source: tool,
    collected_at: timestampOf(data.at),
    hash: data.hash,
    payload,
    actor: `tool:${tool}`,
    request_id: state.request_id,
    trace_id: state.trace_id,
    ...(state.parent_trace_id !== undefined && { parent_trace_id: state.parent_trace_id }),
    ...(data.subtype !== undefined && { 'uaicp:subtype': data.subtype }),
  })
}

/** Redeemed approvals of the present attempt, as evidence. Their content is in the log itself. */
export function approvalEvidence({ state }: GovernedRequest): Evidence[] {
  const minted: Evidence[] = []
  for (const { answer, tool, digest, call } of state.reviews.values()) {
    if (answer?.answer !== 'approved' || state.calls.get(call)?.status !== 'done') continue
    const { approvers = [], tokens = [] } = answer
    const payload = toText({ digest, approvers, tokens })
    const data: EvidenceData & { at: number } = {
      id: `${state.request_id}#${answer.seq}`,
      type: 'approval_token',
      hash: payload.hash,
      at: answer.at,
    }
    const evidence = toEvidence({ state } as GovernedRequest, tool, data, payload.value)
    const approver = approvers[0]
    minted.push(
      Object.freeze({ ...evidence, ...(approver && { actor: `${approver.type}:${approver.id}` }) }),
    )
  }
  return minted
}
