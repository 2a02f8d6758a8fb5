import type {
  Admission,
  Delivery,
  Envelope,
  Evidence,
  Journal,
  JournalEntry,
  JournalRecord,
  PayloadStore,
  ReadOptions,
  Reason,
  SpentStore,
} from '@skein/governance'
import type { AuditLine, Blob, Store } from '../store/store.ts'
import type { GovernanceWrites } from './session-governors.ts'
import type { RuntimeEvent } from '../contract/event.ts'

type Hash = Parameters<PayloadStore['put']>[0]
type Writes = Omit<GovernanceWrites, 'events'>

interface SessionJournalOptions {
  readonly store: Store
  /** The root thread. */
  readonly tree: string
  readonly requestId: string
  /** Commits what was written so far. */
  readonly flush: (() => Promise<void>) | undefined
}

/**
 * What the governor of one session reads and writes: its journal, payloads and spent tokens. Writes are
 * kept until `take`, so that they are committed together with the events of the thread. Positions count
 * within the request; the store gives each line its place in the tree when it is committed.
 */
export class SessionJournal implements Journal, PayloadStore, SpentStore {
  readonly #options: SessionJournalOptions
  /** The lines that `find` read, for the first fold. */
  #found: readonly string[] | undefined
  #lines: AuditLine[] = []
  #texts = new Map<string, string>()
  #spent: { readonly jti: string; readonly exp: number }[] = []
  readonly #spentIds = new Set<string>()
  /** What `take` returned last; its commit may not have finished yet. */
  #takenLines: readonly AuditLine[] = []
  #takenTexts: ReadonlyMap<string, string> = new Map()

  constructor(options: SessionJournalOptions) {
    this.#options = options
  }

  /** Looks the request up. Its first and last entries, where it is known. */
  async find(): Promise<{ readonly first: Envelope; readonly last: Envelope } | undefined> {
    const lines = await this.#readStored(this.#options.requestId)
    const [first] = lines
    const last = lines.at(-1)
    if (first === undefined || last === undefined) return undefined
    this.#found = lines
    for (const line of lines) this.#noteSpent(line)
    return { first: toEnvelope(first), last: toEnvelope(last) }
  }

  append({ request_id, seq, line }: JournalEntry): number | Promise<number> {
    this.#lines.push({ tree: this.#options.tree, requestId: request_id, seq, line })
    const { flush } = this.#options
    // After this entry the governor acts by itself, so it is committed here; the kernel commits all others.
    return flush && line.includes(UNDO_STARTED) ? flush().then(() => seq) : seq
  }

  async *read({ requestId = this.#options.requestId }: ReadOptions = {}): AsyncGenerator<
    JournalRecord,
    void
  > {
    const isOwn = requestId === this.#options.requestId
    const found = isOwn ? this.#found : undefined
    if (isOwn) this.#found = undefined
    let index = 0
    for (const line of found ?? (await this.#readStored(requestId))) {
      yield { index: index++, line, envelope: toEnvelope(line) }
    }
    if (!isOwn) return
    for (const { seq, line } of [...this.#takenLines, ...this.#lines]) {
      if (seq === index) yield { index: index++, line, envelope: toEnvelope(line) }
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

  /** A token that was spent elsewhere is found at the commit: the store refuses it. */
  async spend(jti: string, exp: number): Promise<boolean> {
    const id = jti.slice(jti.indexOf('\n') + 1)
    if (this.#spentIds.has(id)) return false
    this.#spentIds.add(id)
    this.#spent.push({ jti, exp })
    return true
  }

  /** Returns what has to be committed, and forgets it. */
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

  async #readStored(requestId: string): Promise<readonly string[]> {
    const rows = await this.#options.store.audit(this.#options.tree, { requestId })
    return rows.map(({ line }) => line)
  }

  #noteSpent(line: string): void {
    if (!line.includes(REVIEW_ANSWERED)) return
    const { metadata } = toEnvelope(line)
    const { tokens } = (metadata?.['uaicp:data'] ?? {}) as { readonly tokens?: readonly string[] }
    for (const token of tokens ?? []) this.#spentIds.add(token)
  }
}

// A quote inside a text is escaped, so these match the member alone.
const UNDO_STARTED = '"uaicp:event":"undo_started"'
const REVIEW_ANSWERED = '"uaicp:event":"review_answered"'

const utf8 = new TextDecoder()
const encoder = new TextEncoder()

function encode(text: string): Uint8Array {
  return encoder.encode(text)
}

/** Governance writes `sha256:` before the digits; the hash of a blob is the digits alone. */
function blobHash(hash: Hash): string {
  return hash.slice('sha256:'.length)
}

/** Lines of the store were written by a governor and are not checked again here; `verifyAudit` does that. */
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

/** The event for the gate before a call. None for a replayed call: it was judged when it was first made. */
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

/** The event for the gate before delivery. */
export function deliveryEvent(delivery: Delivery, at: string): RuntimeEvent {
  const { type: decision } = delivery
  const event: GateDecided = { type: 'gate_decided', gate: 'pre_deliver', decision, at }
  if (delivery.type === 'delivered') return event
  const reasons = delivery.type === 'repair' ? delivery.why : delivery.result.reasons
  return { ...event, reasonCodes: codesOf(reasons) }
}

/** The event for what a call proved: its source and the hash of its payload, which is a blob. */
export function evidenceEvent(evidence: Evidence, place: GatePlace): RuntimeEvent {
  const { evidence_id: evidenceId, evidence_type: kind, source, hash } = evidence
  const summary = `${kind} of ${source}`
  return { type: 'evidence_added', evidenceId, kind, summary, data: { hash }, ...place }
}

function codesOf(reasons: readonly Reason[]): readonly string[] {
  return [...new Set(reasons.map(({ code }) => code))]
}
