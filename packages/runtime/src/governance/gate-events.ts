import type { Admission, Evidence, Reason } from '@skein/governance'
import type { RuntimeEvent } from '../contract/event.ts'

type GateDecided = Extract<RuntimeEvent, { type: 'gate_decided' }>

/** The call and the time of a decision. */
interface GatePlace {
  readonly at: string
  readonly turnId: string
  readonly toolCallId: string
}

/**
 * Returns the event that records the decision about a call. There is none for a call that is repeated
 * (`replay`), because it was judged when it was first made.
 */
export function admissionEvents(admission: Admission, place: GatePlace): readonly RuntimeEvent[] {
  if (admission.type === 'replay') return []
  const { type: decision } = admission
  const event: GateDecided = { type: 'gate_decided', gate: 'pre_action', decision, ...place }
  const reasonCodes =
    admission.type === 'deny'
      ? codesOf(admission.reasons)
      : admission.type === 'review'
        ? [admission.rejected?.code ?? 'APPROVAL_REQUIRED']
        : []
  return [reasonCodes.length > 0 ? { ...event, reasonCodes } : event]
}

/** Returns the event that records the decision about the delivery. */
export function deliveryEvent(
  decision: 'delivered' | 'repair' | 'fail_safe',
  reasons: readonly Reason[],
  at: string,
): RuntimeEvent {
  const event: GateDecided = { type: 'gate_decided', gate: 'pre_deliver', decision, at }
  return decision === 'delivered' ? event : { ...event, reasonCodes: codesOf(reasons) }
}

/**
 * Returns the event that records the evidence of a call: its source and the hash of its payload, which is a
 * blob.
 */
export function evidenceEvent(evidence: Evidence, place: GatePlace): RuntimeEvent {
  const { evidence_id: evidenceId, evidence_type: kind, source, hash } = evidence
  const summary = `${kind} of ${source}`
  return { type: 'evidence_added', evidenceId, kind, summary, data: { hash }, ...place }
}

function codesOf(reasons: readonly Reason[]): readonly string[] {
  return [...new Set(reasons.map(({ code }) => code))]
}
