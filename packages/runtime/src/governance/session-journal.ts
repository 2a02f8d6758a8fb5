import type {
  Envelope,
  Journal,
  JournalEntry,
  JournalRecord,
  LogReadOptions,
  PayloadStore,
  SpentStore,
} from '@skein/governance'
import type { GovernanceWrites } from './session-governor.ts'
import type { AuditLine, Blob } from '../store/commit.ts'
import type { Store } from '../store/store.ts'

type Hash = Parameters<PayloadStore['put']>[0]

type AuditRow = Awaited<ReturnType<Store['audit']>>[number]

type Writes = Omit<GovernanceWrites, 'events'>

interface SessionJournalOptions {
  readonly store: Store
  /** Id of the root thread. */
  readonly tree: string
  readonly requestId: string
  /** Commits the pending writes immediately. */
  readonly flush: (() => Promise<void>) | undefined
}

/**
 * The storage of one session's governor and results: its journal, payloads and used approval tokens. Writes are kept
 * until `take`, so that they are committed together with the events of the thread. The index of a line counts within
 * the request; its position in the audit log of the root thread is assigned by the store when the line is committed.
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
    const row = isOwn ? this.#found : undefined
    if (isOwn) this.#found = undefined
    let count = 0
    for (const { index, line } of row ?? (await this.#readStored(requestId))) {
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
    const tokens = this.#spent
    const blobs = [...this.#texts].map(([hash, text]): Blob => ({ hash, bytes: encode(text) }))
    this.#takenLines = audit
    this.#takenTexts = this.#texts
    this.#lines = []
    this.#spent = []
    this.#texts = new Map()
    return { audit, spent: tokens, blobs }
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
