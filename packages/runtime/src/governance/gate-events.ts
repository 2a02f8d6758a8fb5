import type { Admission, Delivery, Evidence, Reason } from '@skein/governance'
import type { RuntimeEvent } from '../event.ts'

type GateDecided = Extract<RuntimeEvent, { type: 'gate_decided' }>

/** Where and when something was decided. */
export interface GatePlace {
  readonly at: string
  readonly turnId: string
  readonly toolCallId: string
}

/** What the gate before a call said. Nothing for a call that was made before: it was judged then. */
export function admissionEvents(admission: Admission, place: GatePlace): readonly RuntimeEvent[] {
  if (admission.type === 'replay') return []
  const { type: decision } = admission
  const event: GateDecided = { type: 'gate_decided', gate: 'pre_action', decision, ...place }
  const reasonCodes = admissionCodes(admission)
  return [reasonCodes.length > 0 ? { ...event, reasonCodes } : event]
}

/** What the gate before delivery said. */
export function deliveryEvent(delivery: Delivery, at: string): RuntimeEvent {
  const { type: decision } = delivery
  const event: GateDecided = { type: 'gate_decided', gate: 'pre_deliver', decision, at }
  if (delivery.type === 'delivered') return event
  const reasons = delivery.type === 'repair' ? delivery.why : delivery.result.reasons
  return { ...event, reasonCodes: codesOf(reasons) }
}

/** What a call proved, by name and hash; the payload is a blob. */
export function evidenceEvent(evidence: Evidence, place: GatePlace): RuntimeEvent {
  const { evidence_id: evidenceId, evidence_type: kind, source, hash } = evidence
  const summary = `${kind} of ${source}`
  return { type: 'evidence_added', evidenceId, kind, summary, data: { hash }, ...place }
}

function admissionCodes(admission: Exclude<Admission, { type: 'replay' }>): readonly string[] {
  switch (admission.type) {
    case 'allow':
      return []
    case 'deny':
      return codesOf(admission.reasons)
    case 'review':
      return [admission.rejected?.code ?? 'APPROVAL_REQUIRED']
  }
}

function codesOf(reasons: readonly Reason[]): readonly string[] {
  return [...new Set(reasons.map(({ code }) => code))]
}
