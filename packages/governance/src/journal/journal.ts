import type { Envelope } from '../contract/envelope.ts'

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
   * be lost, such as intents.
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
