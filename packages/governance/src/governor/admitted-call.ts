import type { JsonValue } from '@skein/base'
import type { Hash, Risk } from '../contract/envelope.ts'
import { type CallNames, namesOf } from './call-names.ts'
import type { GovernedCallState, GovernorState } from '../journal/governor-state.ts'

/** A call that `admit` allowed and whose outcome is not recorded yet. */
export interface AdmittedCall {
  readonly request_id: string
  readonly call: string
  readonly tool: string
  readonly risk: Risk
  /**
   * A frozen snapshot of the arguments, so that the tool runs with exactly the arguments that were
   * judged.
   */
  readonly args: JsonValue
  readonly args_hash: Hash
  readonly sent_hash?: Hash
  readonly schema?: string
  readonly idempotency_key: string
}

/** Builds the call that a tool is run with, from a call that was just allowed or from one in the journal. */
export function toAdmitted(
  { state: { request_id } }: { readonly state: GovernorState },
  made: CallNames & Pick<GovernedCallState, 'attempt'>,
  args: JsonValue,
): AdmittedCall {
  const { attempt, ...names } = { ...namesOf(made), attempt: made.attempt }
  // The key stays the same when a call is repeated after a crash, but differs when a later attempt makes
  // the call again, because that is a new effect.
  const idempotency_key = `${request_id}/${names.call}@${attempt}`
  return { request_id, ...names, args, idempotency_key }
}
