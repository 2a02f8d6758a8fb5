import type { JsonObject, JsonValue } from '@skein/base'
import { canTransition, type Envelope, type State } from '../contract/envelope.ts'

/** The data that the checker keeps about a request that has not ended. */
interface OpenRequest {
  state: State
  seq: number
  attempt: number
  /**
   * Calls without a recorded outcome, and calls in doubt, whose outcome may be recorded again.
   */
  readonly calls: Map<string, 'started' | 'in_doubt'>
  readonly approved: Map<string, JsonValue | undefined>
  readonly children: Set<string>
  readonly evidence: Set<JsonValue | undefined>
  readonly passed: Set<JsonValue | undefined>
}

/**
 * Finds sequences of entries that a governor never writes, even if they are signed. It deliberately does not
 * use the governor's own code for reading a journal (`reduce`), so that a bug there is not repeated here. It
 * keeps data only about open requests.
 */
export class LogSemantics {
  readonly #open = new Map<string, OpenRequest>()

  /** Checks the next entry. Returns why it cannot follow the previous ones, or undefined. */
  accept(envelope: Envelope): string | undefined {
    const { request_id, metadata = {}, state, outcome } = envelope
    const { 'uaicp:event': type, 'uaicp:seq': seq, 'uaicp:attempt': attempt } = metadata
    const data = metadata['uaicp:data']
    if (typeof type !== 'string' || typeof seq !== 'number' || !isObject(data))
      return 'not a journal event'
    const request = this.#open.get(request_id)
    if (request === undefined) return this.#begin(envelope, type, seq)
    if (typeof attempt !== 'number' || attempt < request.attempt) return 'an earlier attempt'
    request.seq = seq + 1
    const problem = wrongState(request, type, state) ?? wrongEvent(request, type, data, envelope)
    request.state = state
    request.attempt = attempt
    const isEnd = type === 'delivered' || type === 'failed_safe'
    if (isEnd) this.#open.delete(request_id)
    if (type === 'delivered' && outcome !== 'success') return 'a delivery that is no success'
    if (type === 'failed_safe' && outcome !== 'uncertain')
      return 'a fail-safe that is not uncertain'
    return problem
  }

  #begin({ request_id, state }: Envelope, type: string, seq: number): string | undefined {
    // An entry after the end of its request gets the same message, because ended requests are not remembered.
    if (type !== 'opened' || seq !== 0) return 'an entry of a request that is not open'
    if (state !== 'intake') return 'a request that does not begin at intake'
    this.#open.set(request_id, {
      state,
      seq: 1,
      attempt: 1,
      calls: new Map(),
      approved: new Map(),
      children: new Set(),
      evidence: new Set(),
      passed: new Set(),
    })
    return undefined
  }

  /** Returns the `seq` that the next entry of a request should have. */
  expected(request_id: string): number {
    return this.#open.get(request_id)?.seq ?? 0
  }
}

function wrongState(request: OpenRequest, type: string, state: State): string | undefined {
  if (type === 'opened') return 'a request opened twice'
  const isMove = type === 'transition' || type === 'delivered'
  if (!isMove) return state === request.state ? undefined : `${type} outside its state`
  if (!canTransition(request.state, state)) return `${request.state} to ${state}`
  return (type === 'delivered') === (state === 'deliver') ? undefined : 'a silent delivery'
}

/**
 * Returns why an event cannot follow the previous ones, and stores what later events are checked against.
 */
function wrongEvent(
  request: OpenRequest,
  type: string,
  data: JsonObject,
  { request_id, outcome, rollback_action }: Envelope,
): string | undefined {
  const call = String(data['call'])
  const { calls, approved, children, evidence, passed } = request
  switch (type) {
    case 'review_answered':
      if (data['answer'] !== 'approved') return undefined
      approved.set(call, data['digest'])
      // An approval is evidence too; its id contains the `seq` of the entry with the answer.
      evidence.add(`${request_id}#${request.seq - 1}`)
      return undefined
    case 'call_started':
      if (calls.get(call) === 'started') return 'a call started twice'
      calls.set(call, 'started')
      if (data['risk'] !== 'write_high_risk') return undefined
      if (rollback_action === undefined) return 'a high-risk call without rollback'
      if (!approved.has(call)) return 'a high-risk call without approval'
      return approved.get(call) === data['digest'] ? undefined : 'an approval of another action'
    case 'call_settled': {
      const isKnown = calls.delete(call)
      if (data['effect'] === 'in_doubt') calls.set(call, 'in_doubt')
      const newEvidence = data['evidence']
      if (isObject(newEvidence) && outcome === 'success') evidence.add(newEvidence['id'])
      const isRead = data['risk'] === 'read_only'
      return isKnown || isRead ? undefined : 'the end of a write that never began'
    }
    case 'child_opened':
      children.add(String(data['child']))
      return undefined
    case 'child_settled':
      return children.delete(String(data['child'])) ? undefined : 'the end of no child'
    case 'verified':
      if (outcome === 'success') passed.add(data['report'])
      return undefined
    case 'delivered':
      if ([...calls.values()].includes('started')) return 'a delivery while a call runs'
      if (children.size > 0) return 'a delivery while a child runs'
      if (listOf(data['evidence']).some((id) => !evidence.has(id)))
        return 'a delivery on evidence that was not collected'
      if (listOf(data['reports']).some((id) => !passed.has(id)))
        return 'a delivery on a report that did not pass'
      return undefined
    default:
      return undefined
  }
}

function listOf(value: JsonValue | undefined): readonly JsonValue[] {
  return Array.isArray(value) ? value : []
}

function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
