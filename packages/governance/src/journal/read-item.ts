import { GovernanceError, reason } from '../contract/reason.ts'
import type { JournalItem } from './events.ts'
import type { Envelope, Identity } from '../contract/envelope.ts'
import type { JournalRecord } from './journal.ts'

/**
 * Reads the event from an envelope of our log. Throws SCHEMA_INVALID if the envelope contains no journal
 * event.
 */
export function readItem({ envelope }: Pick<JournalRecord, 'envelope'>): JournalItem {
  const { metadata = {}, identity, rollback_action, streaming, parent_trace_id } = envelope
  const { 'uaicp:event': type, 'uaicp:data': data } = metadata
  const { 'uaicp:seq': seq, 'uaicp:attempt': attempt } = metadata
  if (typeof type !== 'string' || typeof seq !== 'number' || typeof attempt !== 'number') {
    throw new GovernanceError(
      `An entry of request ${envelope.request_id} is not a journal event.`,
      [reason('SCHEMA_INVALID', envelope.request_id, 'metadata lacks uaicp:event')],
    )
  }
  const item = {
    type,
    data,
    request_id: envelope.request_id,
    trace_id: envelope.trace_id,
    parent_trace_id,
    seq,
    attempt,
    state: envelope.state,
    outcome: envelope.outcome,
    actor: identity['uaicp:actor'],
    at: Date.parse(envelope.timestamp),
    rollback: rollback_action,
    streaming,
  }
  // The cast is safe for lines that `createLineWriter` wrote. Lines that were changed later are not
  // detected here, but by `verifyLog`.
  return item as unknown as JournalItem
}

/** Returns the identity of an envelope, without the actor that each entry adds. */
export function identityOf({ identity }: Envelope): Identity {
  const { 'uaicp:actor': _actor, ...rest } = identity
  return rest as Identity
}
