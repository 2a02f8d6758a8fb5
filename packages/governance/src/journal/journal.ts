import type { MissingNeed } from '../contract/evidence.ts'
import { type Reason, GovernanceError, reason } from '../contract/reason.ts'
import type {
  AnswerData,
  ChildData,
  ChildSettledData,
  DeliveredData,
  RecordedEffect,
  EffectReference,
  EvidenceData,
  FailedData,
  OpenedData,
  ReviewData,
  StepData,
  UndoData,
  VerifiedData,
  JournalEvent,
  JournalItem,
} from './events.ts'
import {
  type Outcome,
  type Risk,
  type RollbackAction,
  type State,
  type Actor,
  type Envelope,
  type Hash,
  type Identity,
  UAICP_VERSION,
} from '../contract/envelope.ts'
import { canonicalJson } from '@skein/base'

/**
 * One line to be written. `line` is the canonical JSON of a schema-valid envelope, without line
 * break; `seq` counts the entries of one request from 0 and is in the line as `uaicp:seq`.
 */
export interface JournalEntry {
  readonly request_id: string
  readonly seq: number
  readonly line: string
}

/** Options of `Journal.append`. */
export interface AuditAppendOptions {
  /**
   * `append` resolves only once the line would survive a crash of the machine. Set for entries that must not
   * be lost, such as those which say that a write is about to run (intents).
   */
  readonly durable?: boolean
  /** The log makes a checkpoint that covers the line. Set for the entry that comes before a high-risk write. */
  readonly seal?: boolean
}

/** A line that was written. */
export interface JournalRecord {
  /** Position in the whole log, from 0. */
  readonly index: number
  readonly line: string
  readonly envelope: Envelope
}

/** Which lines to read. */
export interface LogReadOptions {
  /** First index; 0 by default. */
  readonly from?: number
  /** Only entries of this request. */
  readonly requestId?: string
}

/**
 * The log that the governor writes its entries to and computes its state from. Entries are stored in the
 * order in which `append` was called. `append` resolves to the index of the entry. It rejects when the line
 * may be lost, and with the code STATE_CONFLICT when the request already has an entry with this `seq`,
 * because another process was faster. After a rejection the governor does nothing more for that request.
 */
export interface Journal {
  append(entry: JournalEntry, options?: AuditAppendOptions): number | Promise<number>
  read(options?: LogReadOptions): AsyncIterable<JournalRecord>
}

/** The text of a checkpoint: the size and root hash of a log, signed (C2SP signed note). */
export type Checkpoint = string

/** A journal that can prove that it was not changed, with a Merkle tree (RFC 6962) over its lines. */
export interface AuditLog extends Journal {
  /** Returns a checkpoint that covers all entries appended so far. */
  seal(): Promise<Checkpoint>
  /** Returns the hashes, in base64, that prove that an entry is in the tree of `size` entries. */
  prove(index: number, size: number): Promise<readonly string[]>
  /**
   * Returns the hashes, in base64, that prove that the tree of size `to` extends the tree of size `from`.
   */
  consistency(from: number, to: number): Promise<readonly string[]>
}

/** The members that all lines of a request have in common. */
interface LineFrame {
  readonly identity: Identity
  readonly request_id: string
  readonly trace_id: string
  readonly parent_trace_id: string | undefined
}

/** Converts a journal item into its line: the canonical JSON of its envelope. */
export type LineWriter = (item: JournalItem) => string

/**
 * Creates the line writer of one request. Because the shape of a line is fixed, it writes the members in
 * canonical order directly instead of sorting them each time; a test compares its output with that of
 * `canonicalJson`.
 */
export function createLineWriter(frame: LineFrame): LineWriter {
  let lastActor: Actor | undefined
  let lastIdentity = ''
  const { parent_trace_id, request_id, trace_id } = frame
  const parent = parent_trace_id ? `,"parent_trace_id":${JSON.stringify(parent_trace_id)}` : ''
  const ids = `${parent},"request_id":${JSON.stringify(request_id)}`
  const tail = `,"trace_id":${JSON.stringify(trace_id)},"uaicp_version":"${UAICP_VERSION}"}`
  const identityOf = (actor: Actor): string => {
    // Nearly all entries of a request have the same actor, which is the same object.
    if (actor !== lastActor) {
      lastIdentity = canonicalJson({ ...frame.identity, 'uaicp:actor': actor })
      lastActor = actor
    }
    return lastIdentity
  }
  return (item) => {
    const rollback = item.rollback ? `,"rollback_action":${canonicalJson(item.rollback)}` : ''
    const streaming = item.streaming ? `,"streaming":${canonicalJson(item.streaming)}` : ''
    return (
      `{"identity":${identityOf(item.actor)},"metadata":{"uaicp:attempt":${item.attempt},` +
      `"uaicp:data":${writeData(item)},"uaicp:event":"${item.type}","uaicp:seq":${item.seq}},` +
      `"outcome":"${item.outcome}"${ids}${rollback},"state":"${item.state}"${streaming},` +
      `"timestamp":"${timestampOf(item.at)}"${tail}`
    )
  }
}

/** Formats a time as RFC 3339 in UTC with milliseconds. */
export function timestampOf(at: number): string {
  if (at !== lastAt) {
    lastText = new Date(at).toISOString()
    lastAt = at
  }
  return lastText
}

// The last timestamp is cached, because many entries are written in the same millisecond.
let lastAt = Number.NaN
let lastText = ''

/**
 * Converts the data of an entry to canonical JSON. The end of a successful call is by far the most
 * frequent entry, so for speed its members are written directly in canonical order.
 */
function writeData(item: JournalEvent): string {
  const isOrdinary = item.type === 'call_settled' && item.data.sent_hash === undefined
  if (!isOrdinary || item.data.reasons || item.data.settled_by) {
    return canonicalJson(item.data)
  }
  const { args_hash, call, effect, evidence, risk, tool } = item.data
  const subtype = evidence?.subtype ? `,"subtype":${JSON.stringify(evidence.subtype)}` : ''
  const result = evidence?.result_hash ? `,"result_hash":"${evidence.result_hash}"` : ''
  const minted = evidence
    ? `,"evidence":{"hash":"${evidence.hash}","id":"${evidence.id}"${result}${subtype},"type":"${evidence.type}"}`
    : ''
  return (
    `{"args_hash":"${args_hash}","call":${JSON.stringify(call)},"effect":"${effect}"${minted},` +
    `"risk":"${risk}","tool":${JSON.stringify(tool)}}`
  )
}

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

/** The whole state of a request, computed from its journal entries. */
export interface GovernorState {
  readonly request_id: string
  readonly trace_id: string
  readonly parent_trace_id: string | undefined
  readonly identity: Identity
  readonly opened: OpenedData
  readonly state: State
  /** Starts at 1 and grows by one with each repair. */
  readonly attempt: number
  /** Sequence number of the next entry. */
  readonly seq: number
  readonly startedAt: number
  readonly calls: ReadonlyMap<string, GovernedCallState>
  readonly callCount: number
  readonly reviews: ReadonlyMap<string, ReviewState>
  readonly steps: ReadonlyMap<string, StepState>
  readonly chunks: readonly ChunkState[]
  readonly children: ReadonlyMap<string, GovernedChildState>
  /**
   * Writes that happened or may have happened, of the request and of its children, in order of
   * completion. A write whose effect was unknown at first (in doubt) and then found to be applied is listed
   * twice. `undo` contains which of these writes were undone.
   */
  readonly effects: readonly EffectReference[]
  readonly undo: ReadonlyMap<string, UndoState>
  /** The verifiers' reports of the current attempt. */
  readonly reports: readonly ReportState[]
  /** Why calls of the current attempt were refused. */
  readonly refusals: readonly Reason[]
  /** Why the previous attempt failed or, in `fail_safe`, why the whole run failed. */
  readonly why: readonly Reason[]
  /** In `fail_safe`: the required evidence that is missing. */
  readonly missing: readonly MissingNeed[]
  readonly delivered: DeliveredData | undefined
  readonly failed: FailedData | undefined
}
/** One call of a request. */
export interface GovernedCallState {
  readonly call: string
  readonly tool: string
  readonly risk: Risk
  readonly args_hash: Hash
  readonly sent_hash?: Hash
  readonly schema?: string
  readonly attempt: number
  /** A call that is still `started` after its process has died may or may not have had its effect (in doubt). */
  readonly status: 'started' | 'done' | 'failed' | 'refused' | 'retry' | 'undone'
  readonly effect: RecordedEffect
  /** 1, and one more each time that a person found that the call had no effect and may be made again. */
  readonly round: number
  readonly policy_hash: Hash | undefined
  readonly rollback: RollbackAction | undefined
  readonly evidence: (EvidenceData & { readonly at: number }) | undefined
  readonly reasons: readonly Reason[]
}
/** An approval request, with the latest answer. */
export interface ReviewState extends ReviewData {
  readonly rollback: RollbackAction | undefined
  readonly answer: (AnswerData & { readonly seq: number; readonly at: number }) | undefined
}
/** A recorded step; `ok` is false if it threw an error. */
export interface StepState extends StepData {
  readonly ok: boolean
}
/** A chunk of text that was streamed. */
export interface ChunkState {
  readonly hash: Hash
  readonly attempt: number
}
/** A child run; `settled` is set once it has ended. */
export interface GovernedChildState extends ChildData {
  readonly attempt: number
  readonly settled: (ChildSettledData & { readonly outcome: Outcome }) | undefined
}
/** A verifier's report in the current attempt. */
export interface ReportState extends VerifiedData {
  readonly passed: boolean
}
/** The progress of undoing one write. */
export interface UndoState extends EffectReference {
  /** Undefined while the undoing is not finished. */
  readonly settled: UndoData | undefined
}
