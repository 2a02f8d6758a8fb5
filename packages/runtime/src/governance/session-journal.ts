import {
  type Admission,
  type Envelope,
  type Evidence,
  type Identity,
  type Journal,
  type JournalEntry,
  type JournalRecord,
  type PayloadStore,
  type LogReadOptions,
  type Reason,
  type SpentStore,
} from '@skein/governance'
import type { AuditLine, Blob, Store } from '../store/store.ts'
import type { GovernanceWrites, GovernedSession } from './session-governors.ts'
import type { RuntimeEvent } from '../contract/event.ts'
import { sha256Hex } from '@skein/base'

type Hash = Parameters<PayloadStore['put']>[0]
type AuditRow = Awaited<ReturnType<Store['audit']>>[number]
type Writes = Omit<GovernanceWrites, 'events'>

interface SessionJournalOptions {
  readonly store: Store
  /** Id of the root thread. */
  readonly tree: string
  readonly requestId: string
  /** Commits the pending writes at once. */
  readonly flush: (() => Promise<void>) | undefined
}

/**
 * The storage of one session's governor, which judges calls and results: its journal, payloads and used
 * approval tokens. Writes are kept until `take`, so that they are committed together with the events of the
 * thread. The index of a line counts within the request; its position in the audit log of the root thread is
 * given by the store when the line is committed.
 */
export class SessionJournal implements Journal, PayloadStore, SpentStore {
  readonly #options: SessionJournalOptions
  /** The lines that `find` has read; the first `read` uses them. */
  #found: readonly AuditRow[] | undefined
  #lines: AuditLine[] = []
  #texts = new Map<string, string>()
  #spent: { readonly jti: string; readonly exp: number }[] = []
  readonly #spentIds = new Set<string>()
  /** The lines that `take` returned last; their commit may not have finished yet. */
  #takenLines: readonly AuditLine[] = []
  #takenTexts: ReadonlyMap<string, string> = new Map()

  constructor(options: SessionJournalOptions) {
    this.#options = options
  }

  /**
   * Reads the request from the audit log. Returns its first and last entries, and the place of the first one in the
   * log of the tree; undefined if it is not there.
   */
  async find(): Promise<
    { readonly first: Envelope; readonly last: Envelope; readonly from: number } | undefined
  > {
    const rows = await this.#readStored(this.#options.requestId)
    const [first] = rows
    const last = rows.at(-1)
    if (first === undefined || last === undefined) return undefined
    this.#found = rows
    for (const { line } of rows) this.#noteSpent(line)
    return { first: toEnvelope(first.line), last: toEnvelope(last.line), from: first.index }
  }

  append({ request_id, seq, line }: JournalEntry): number | Promise<number> {
    this.#lines.push({ tree: this.#options.tree, requestId: request_id, seq, line })
    const { flush } = this.#options
    // After this entry the governor undoes a write by itself, so the entry is committed here; all other
    // entries are part of the thread's next commit.
    // So is the entry after it: a crash would leave it unknown whether the write was undone.
    const isUndo = line.includes(UNDO_STARTED) || line.includes(UNDO_SETTLED)
    return flush && isUndo ? flush().then(() => seq) : seq
  }

  async *read({ requestId = this.#options.requestId }: LogReadOptions = {}): AsyncGenerator<
    JournalRecord,
    void
  > {
    const isOwn = requestId === this.#options.requestId
    const found = isOwn ? this.#found : undefined
    if (isOwn) this.#found = undefined
    let count = 0
    for (const { index, line } of found ?? (await this.#readStored(requestId))) {
      yield { index, line, envelope: toEnvelope(line) }
      count++
    }
    if (!isOwn) return
    for (const { seq, line } of [...this.#takenLines, ...this.#lines]) {
      if (seq === count) yield { index: UNCOMMITTED + count++, line, envelope: toEnvelope(line) }
    }
  }

  put(hash: Hash, text: string): void {
    this.#texts.set(blobHash(hash), text)
  }

  async get(hash: Hash): Promise<string | undefined> {
    const key = blobHash(hash)
    const text = this.#texts.get(key) ?? this.#takenTexts.get(key)
    if (text !== undefined) return text
    const bytes = await this.#options.store.blob(key)
    return bytes && utf8.decode(bytes)
  }

  /**
   * Marks an approval token as used; returns false if this request has used it before. A token that was used
   * elsewhere is rejected by the store at the commit.
   */
  async spend(jti: string, exp: number): Promise<boolean> {
    const id = jti.slice(jti.indexOf('\n') + 1)
    if (this.#spentIds.has(id)) return false
    this.#spentIds.add(id)
    this.#spent.push({ jti, exp })
    return true
  }

  /** Returns the pending writes, to be committed, and clears them. */
  take(): Writes {
    const audit = this.#lines
    const spent = this.#spent
    const blobs = [...this.#texts].map(([hash, text]): Blob => ({ hash, bytes: encode(text) }))
    this.#takenLines = audit
    this.#takenTexts = this.#texts
    this.#lines = []
    this.#spent = []
    this.#texts = new Map()
    return { audit, spent, blobs }
  }

  #readStored(requestId: string): Promise<readonly AuditRow[]> {
    return this.#options.store.audit(this.#options.tree, { requestId })
  }

  #noteSpent(line: string): void {
    if (!line.includes(REVIEW_ANSWERED)) return
    const { metadata } = toEnvelope(line)
    const { tokens } = (metadata?.['uaicp:data'] ?? {}) as { readonly tokens?: readonly string[] }
    for (const token of tokens ?? []) this.#spentIds.add(token)
  }
}

// Quotes inside a JSON string are escaped, so these texts match only a member of a line, never a text in it.
const UNDO_STARTED = '"uaicp:event":"undo_started"'
const UNDO_SETTLED = '"uaicp:event":"undo_settled"'
const REVIEW_ANSWERED = '"uaicp:event":"review_answered"'

/** The place of the first entry that is not committed yet: behind every place in a log. */
const UNCOMMITTED = 2 ** 52

const utf8 = new TextDecoder()
const encoder = new TextEncoder()

function encode(text: string): Uint8Array {
  return encoder.encode(text)
}

/** Removes the prefix `sha256:` that `@skein/governance` writes; the hash of a blob has no prefix. */
function blobHash(hash: Hash): string {
  return hash.slice('sha256:'.length)
}

/**
 * Parses a line of the audit log. It is not checked here, because a governor wrote it; `verifyAudit` checks
 * it.
 */
function toEnvelope(line: string): Envelope {
  return JSON.parse(line) as Envelope
}

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

/** The member of an identity that contains the thread id. Grants are valid only for that thread. */
export const THREAD_MEMBER = 'skein:thread'

/** The member of an identity with the requests that the session works for, the outermost first. */
export const CALLERS_MEMBER = 'skein:callers'

/** Returns the id of a session's request: the session's id if it is a UUID, else a UUID derived from it. */
export function sessionRequestId({
  threadId,
  sessionId,
}: Pick<GovernedSession, 'threadId' | 'sessionId'>): string {
  return BARE_UUID.test(sessionId) ? sessionId : uuidOf(`${threadId}\n${sessionId}`)
}

/** Returns the W3C trace id of a session. */
export function traceIdOf({
  threadId,
  sessionId,
}: Pick<GovernedSession, 'threadId' | 'sessionId'>): string {
  return sha256Hex(`trace\n${threadId}\n${sessionId}`).slice(0, 32)
}

/**
 * Returns the identity for which the session acts: the tenant is its owner, and the owner of the thread is
 * its user.
 */
export function sessionIdentity({
  agent,
  tenant,
  owner,
  threadId,
  callers = [],
}: GovernedSession): Identity {
  return {
    agent_id: agent.name,
    owner_id: tenant || 'default',
    ...(owner && { user_id: owner }),
    control_class: 'human-supervised',
    [THREAD_MEMBER]: threadId,
    ...(callers.length > 0 && { [CALLERS_MEMBER]: callers.map(sessionRequestId).join(' ') }),
  }
}

const BARE_UUID = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/

/** Derives a UUID of version 8 (RFC 9562 §5.8) from a text. */
function uuidOf(text: string): string {
  return uuidFrom(sha256Hex(text))
}

/** Returns the UUID of version 8 with the bits of a hash. */
export function uuidFrom(hex: string): string {
  const variant = ((Number.parseInt(hex[16]!, 16) & 3) | 8).toString(16)
  const parts = [hex.slice(0, 8), hex.slice(8, 12), `8${hex.slice(13, 16)}`]
  return [...parts, `${variant}${hex.slice(17, 20)}`, hex.slice(20, 32)].join('-')
}
