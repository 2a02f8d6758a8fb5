import type { Envelope, Hash } from './envelope.ts'

/**
 * One line to be written. `line` is the canonical JSON of a schema-valid envelope, without line
 * break; `seq` counts the entries of one request from 0 and stands in the line as `uaicp:seq`.
 */
export interface JournalEntry {
  readonly request_id: string
  readonly seq: number
  readonly line: string
}

export interface AppendOptions {
  /** Resolve only when the line survives a crash of the machine. Set for intents of writes. */
  readonly durable?: boolean
  /** Ask for a checkpoint that covers the line. Set for high-risk intents. */
  readonly seal?: boolean
}

/** A line that was written. */
export interface JournalRecord {
  /** Position in the whole log, from 0. */
  readonly index: number
  readonly line: string
  readonly envelope: Envelope
}

export interface ReadOptions {
  /** First index; 0 by default. */
  readonly from?: number
  /** Only entries of this request. */
  readonly requestId?: string
}

/**
 * What the governor writes to and folds its state from. Entries stand in the order of the calls.
 * `append` resolves to the index; it rejects when the line may be lost, and with code STATE_CONFLICT
 * when the request already has an entry with this `seq` (another process was faster). After a
 * rejection the governor does nothing more for that request.
 */
export interface Journal {
  append(entry: JournalEntry, options?: AppendOptions): number | Promise<number>
  read(options?: ReadOptions): AsyncIterable<JournalRecord>
}

/** Text of a signed tree head (C2SP signed note). */
export type Checkpoint = string

/** A journal that can show that it was not changed: RFC 6962 tree over the exact lines. */
export interface AuditLog extends Journal {
  /** A signed tree head over everything appended so far. */
  seal(): Promise<Checkpoint>
  /** Inclusion path of an entry in the tree of `size` entries, base64. */
  prove(index: number, size: number): Promise<readonly string[]>
  /** Consistency path between two sizes, base64. */
  consistency(from: number, to: number): Promise<readonly string[]>
}

/**
 * Where payloads live: arguments, results, values of steps. The log holds their hashes only, so that
 * a payload can be erased and the log still verifies. `text` is canonical JSON.
 */
export interface PayloadStore {
  /** Called before the entry that names the hash; `durable` as for that entry. */
  put(hash: Hash, text: string, options?: { readonly durable?: boolean }): void | Promise<void>
  /** Undefined when erased or never there. */
  get(hash: Hash): string | undefined | Promise<string | undefined>
}
