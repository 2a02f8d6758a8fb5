import { canonicalJson, type JsonValue } from '@skein/base'
import { type Evidence, EVIDENCE_TYPES } from '../contract/evidence.ts'
import { reason, type Reason, thrownText } from '../contract/reason.ts'
import { type GovernedCallState, standingCalls } from '../journal/governor-state.ts'
import { conflict, type GovernedRequest } from './request.ts'
import type { EvidenceClaim } from '../contract/governed.ts'
import { type Hash, hashText, parseFrozen } from '../contract/envelope.ts'
import { timestampOf } from '../journal/line-writer.ts'
import type { EvidenceData } from '../journal/events.ts'
import type { AdmittedCall } from './admitted-call.ts'

/** A value with its canonical text and hash. */
interface Text {
  readonly text: string
  readonly hash: Hash
  readonly value: JsonValue
}

function toText(value: unknown): Text {
  const text = canonicalJson(value)
  return { text, hash: hashText(text), value: parseFrozen(text) }
}

type Minted =
  | { readonly claim: EvidenceClaim; readonly result: Text; readonly payload: Text }
  | { readonly reasons: readonly Reason[]; readonly effect: 'applied' }

/** The evidence of a tool that declares none. Its payload is the tool's result; the `null` here is not used. */
const TOOL_RESULT: EvidenceClaim = { type: 'tool_result', payload: null }

/**
 * Creates the evidence from a tool's result, as the tool declares it, or returns the reasons why the
 * result cannot be evidence.
 */
export function mint(
  request: GovernedRequest,
  { tool, args }: AdmittedCall,
  value: unknown,
): Minted {
  let problem: string
  try {
    const result = toText(value === undefined ? null : value)
    const claim = request.findTool(tool)?.governance.evidence?.(result.value, args)
    if (!claim) return { claim: TOOL_RESULT, result, payload: result }
    const { type, subtype } = claim
    if (!EVIDENCE_TYPES.includes(type)) problem = `"${type}" is not a type of evidence`
    // Only an approval whose tokens were accepted becomes evidence of this type, so no tool can claim it.
    else if (type === 'approval_token') problem = 'a tool cannot mint approvals'
    else if (type === 'custom' && !/^[^:\s]+:[^\s]+$/.test(subtype ?? ''))
      problem = 'custom needs a subtype'
    else return { claim, result, payload: toText(claim.payload) }
  } catch (error) {
    problem = thrownText(error)
  }
  return { reasons: [reason('EVIDENCE_INVALID', tool, problem)], effect: 'applied' }
}

/** Returns the evidence of a completed call, from the cache or rebuilt from its record and its payload. */
export async function evidenceOf(
  request: GovernedRequest,
  call: GovernedCallState,
): Promise<Evidence> {
  const cachedEvidence = request.evidence.get(call.call)
  if (cachedEvidence) return cachedEvidence
  if (!call.evidence) throw conflict(request, `call ${call.call} left no evidence`)
  const payload = await request.fetch(call.evidence.hash)
  const evidence = toEvidence(request, call.tool, call.evidence, payload)
  request.evidence.set(call.call, evidence)
  return evidence
}

/** The evidence with the members of its record; frozen, so that receivers cannot change it. */
export function toEvidence(
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
    // Absent members are left out rather than set to undefined, because validators check which members
    // exist.
    ...(state.parent_trace_id !== undefined && { parent_trace_id: state.parent_trace_id }),
    ...(data.subtype !== undefined && { 'uaicp:subtype': data.subtype }),
  })
}

/**
 * Returns the accepted approvals of calls that succeeded, as evidence. Their content comes from the log, not
 * from the payload store.
 */
export function approvalEvidence({ state }: GovernedRequest): Evidence[] {
  const approvals: Evidence[] = []
  for (const { answer, tool, digest, call } of state.reviews.values()) {
    if (answer?.answer !== 'approved' || state.calls.get(call)?.status !== 'done') continue
    const { approvers = [], tokens = [], seq, at } = answer
    const { hash, value } = toText({ digest, approvers, tokens })
    const id = `${state.request_id}#${seq}`
    const [first] = approvers
    const actor = first && `${first.type}:${first.id}`
    approvals.push(
      toEvidence({ state }, tool, { id, type: 'approval_token', hash, at }, value, actor),
    )
  }
  return approvals
}

/**
 * Collects the evidence of the current attempt, frozen, and the reasons why some of it could not be read.
 */
export async function collectEvidence(
  request: GovernedRequest,
): Promise<{ readonly evidence: readonly Evidence[]; readonly reasons: readonly Reason[] }> {
  const evidence: Evidence[] = []
  const reasons: Reason[] = []
  for (const call of standingCalls(request.state)) {
    try {
      evidence.push(await evidenceOf(request, call))
    } catch (error) {
      reasons.push(reason('EVIDENCE_INVALID', call.tool, thrownText(error)))
    }
  }
  return { evidence: Object.freeze([...evidence, ...approvalEvidence(request)]), reasons }
}
