import {
  closeSync,
  fdatasync,
  fstatSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { encodeBase64, sha256 } from '@skein/base'
import type {
  AuditAppendOptions,
  AuditLog,
  Checkpoint,
  JournalEntry,
  JournalRecord,
  LogReadOptions,
} from '../journal/journal.ts'
import { parseCheckpoint, signCheckpoint } from './checkpoint.ts'
import type { Envelope } from '../contract/envelope.ts'
import { lockFolder, SharedTask, syncFolder } from './folder-node.ts'
import {
  CHECKPOINTS_FILE,
  ENTRIES_FILE,
  readChunks,
  type RestoredLog,
  restoreLog,
} from './read-folder-node.ts'
import { type PrivateJwk, type PublicJwk, type SigningKey, toSigningKey } from '../keys/keys.ts'
import { splitLines } from './log-lines.ts'
import type { LogSequences } from './memory-log.ts'
import { type CompactRange, proveConsistency, proveInclusion } from './merkle.ts'
import { GovernanceError, reason } from '../contract/reason.ts'

export { filePayloads, type ErasablePayloads } from './folder-node.ts'
export { verifyLogFolder } from './read-folder-node.ts'

/** Options of `fileLog`. */
export interface FileLogOptions {
  /** A folder for this log only. If it does not exist, it is created with access for its owner only. */
  readonly dir: string
  /** Name of the log in its checkpoints, such as `example.com/audit`. */
  readonly origin: string
  /** An Ed25519 key that signs checkpoints. */
  readonly key: PrivateJwk | SigningKey
  /** The number of new entries after which a checkpoint is made; 1000 by default. */
  readonly sealEvery?: number
  /** Adds the signatures of witnesses to a checkpoint. It must not change the signed text. */
  readonly cosign?: (checkpoint: Checkpoint) => Promise<Checkpoint>
}

/** Opens the log in a folder, or starts a new one. Throws if the log does not match its last checkpoint. */
export async function fileLog(options: FileLogOptions): Promise<FileLog> {
  mkdirSync(options.dir, { recursive: true, mode: 0o700 })
  const unlock = lockFolder(options.dir)
  try {
    const log = new FileLog(options, await restoreLog(options.dir, options.origin), unlock)
    await syncFolder(options.dir)
    return log
  } catch (error) {
    unlock()
    throw error
  }
}

/**
 * A log in files that only one process may write. When `append` returns, the operating system has the
 * entry, so `kill -9` loses no entry. When the promise of a durable entry resolves, the entry is on disk;
 * entries that wait at the same time share one sync.
 */
export class FileLog implements AuditLog {
  readonly #dir: string
  readonly #origin: string
  readonly #key: SigningKey
  readonly #sealEvery: number
  readonly #cosign: FileLogOptions['cosign']
  readonly #unlock: () => void
  readonly #entries: number
  readonly #checkpoints: number
  readonly #tree: CompactRange
  readonly #sequences: LogSequences
  readonly #sync = new SharedTask(() => this.#syncNow())
  readonly #seal = new SharedTask(() => this.#sealNow())
  #scratch: Buffer = Buffer.alloc(1 << 14)
  #bytes: number
  #sealed: { readonly size: number; readonly checkpoint: Checkpoint } | undefined
  #failure: unknown
  #sealFailure: unknown
  #isClosed = false
  #syncs = 0

  /**
   * The number of bytes of an incomplete last entry, caused by a crash, that were removed when the log
   * was opened.
   */
  readonly tornBytes: number

  constructor(options: FileLogOptions, restored: RestoredLog, unlock: () => void) {
    this.#dir = options.dir
    this.#origin = options.origin
    this.#key = toSigningKey(options.key)
    this.#sealEvery = options.sealEvery ?? 1000
    this.#cosign = options.cosign
    this.#unlock = unlock
    this.#tree = restored.tree
    this.#sequences = restored.sequences
    this.#bytes = restored.bytes
    this.#sealed = restored.sealed
    this.tornBytes = restored.tornBytes
    this.#entries = openSync(join(options.dir, ENTRIES_FILE), 'a', 0o600)
    this.#checkpoints = openSync(join(options.dir, CHECKPOINTS_FILE), 'a', 0o600)
    if (restored.tornBytes > 0) ftruncateSync(this.#entries, restored.bytes)
    ftruncateSync(this.#checkpoints, restored.checkpointBytes)
  }

  /** The number of entries in the log. */
  get size(): number {
    return this.#tree.size
  }

  /** The number of syncs to disk since the log was opened; many durable entries can share one sync. */
  get syncs(): number {
    return this.#syncs
  }

  /** The newest checkpoint, if there is one. */
  get checkpoint(): Checkpoint | undefined {
    return this.#sealed?.checkpoint
  }

  /** The public key for verifying checkpoints. */
  get publicKey(): PublicJwk {
    return this.#key.jwk
  }

  append(
    entry: JournalEntry,
    { durable, seal }: AuditAppendOptions = {},
  ): number | Promise<number> {
    this.#assertUsable()
    this.#sequences.check(entry)
    const index = this.#tree.size
    const offset = this.#bytes
    this.#tree.append(this.#write(entry.line))
    this.#sequences.advance(entry.request_id, entry.seq, index, offset)
    if (seal || this.size - (this.#sealed?.size ?? 0) >= this.#sealEvery) this.#sealSoon()
    if (!durable && !(seal && this.#sealFailure)) return index
    return this.#settle(index, seal)
  }

  async #settle(index: number, seal: boolean | undefined): Promise<number> {
    await this.#sync.run()
    // If the last checkpoint failed, a new one must succeed before a high-risk call may run.
    if (seal && this.#sealFailure) await this.seal()
    return index
  }

  /**
   * Writes one line and returns its leaf hash. The line is encoded only once, for writing and for
   * hashing.
   */
  #write(line: string): Uint8Array {
    const most = line.length * 3 + 2
    if (this.#scratch.length < most) this.#scratch = Buffer.alloc(most * 2)
    const scratch = this.#scratch
    const end = 1 + scratch.write(line, 1)
    scratch[end] = 10
    try {
      for (let at = 1; at <= end;) at += writeSync(this.#entries, scratch, at, end + 1 - at)
    } catch (cause) {
      this.#takeBack()
      throw unavailable('An entry could not be written', cause)
    }
    this.#bytes += end
    return sha256(scratch.subarray(0, end))
  }

  /** Removes an incompletely written line; otherwise the next line would be appended to it. */
  #takeBack(): void {
    try {
      ftruncateSync(this.#entries, this.#bytes)
    } catch (error) {
      this.#failure = error
    }
  }

  async #syncNow(): Promise<void> {
    this.#syncs++
    try {
      await promisify(fdatasync)(this.#entries)
      const { size } = fstatSync(this.#entries)
      if (size < this.#bytes) throw new Error('the file is shorter than what was written to it')
    } catch (cause) {
      // After a failed sync it is unknown what is on disk, and a second sync may report success for data
      // that the kernel has dropped. So the log cannot be used until it is opened again.
      this.#failure = cause
      throw unavailable('Entries could not be brought to disk', cause)
    }
  }

  seal(): Promise<Checkpoint> {
    this.#assertUsable()
    return this.#seal.run()
  }

  #sealSoon(): void {
    this.#seal.run().catch((error: unknown) => (this.#sealFailure = error))
  }

  async #sealNow(): Promise<Checkpoint> {
    if (this.#sealed?.size === this.size) return this.#sealed.checkpoint
    const head = { origin: this.#origin, size: this.size, root: this.#tree.root() }
    // Entries are synced before the checkpoint is written: a checkpoint over lines that are lost in a
    // crash would look like tampering.
    await this.#sync.run()
    const signature = await signCheckpoint(head, this.#key)
    const checkpoint = this.#cosign ? await this.#cosign(signature) : signature
    if (parseCheckpoint(checkpoint)?.note.text !== parseCheckpoint(signature)?.note.text)
      throw unavailable('A witness returned another checkpoint than it was given', undefined)
    writeSync(this.#checkpoints, `${JSON.stringify(checkpoint)}\n`)
    await promisify(fdatasync)(this.#checkpoints)
    this.#sealed = { size: head.size, checkpoint }
    this.#sealFailure = undefined
    return checkpoint
  }

  async *read({ from = 0, requestId }: LogReadOptions = {}): AsyncGenerator<JournalRecord, void> {
    const place = requestId === undefined ? undefined : this.#sequences.get(requestId)
    if (requestId !== undefined && place === undefined) return
    const chunks = readChunks(join(this.#dir, ENTRIES_FILE), place?.offset ?? 0)
    let index = place?.first ?? 0
    let left = place?.next ?? Infinity
    for await (const lines of splitLines(chunks)) {
      for (const { leaf, isWhole } of lines) {
        if (!isWhole || left === 0) return
        const line = decoder.decode(leaf.subarray(1))
        const isWanted = requestId === undefined || line.includes(requestId)
        // The line is not validated, because the governor wrote it. Use `verifyLog` for logs that others
        // stored.
        const envelope = isWanted ? (JSON.parse(line) as Envelope) : undefined
        if (envelope && (requestId === undefined || envelope.request_id === requestId)) {
          left--
          if (index >= from) yield { index, line, envelope }
        }
        index++
      }
    }
  }

  async prove(index: number, size: number): Promise<string[]> {
    return (await proveInclusion(this.#leaves(), index, size)).map(encodeBase64)
  }

  async consistency(from: number, to: number): Promise<string[]> {
    return (await proveConsistency(this.#leaves(), from, to)).map(encodeBase64)
  }

  async *#leaves(): AsyncGenerator<Uint8Array, void> {
    for await (const lines of splitLines(readChunks(join(this.#dir, ENTRIES_FILE)))) {
      for (const { leaf } of lines) yield sha256(leaf)
    }
  }

  /** Makes a last checkpoint if there are new entries, closes the files and unlocks the folder. */
  async close(): Promise<void> {
    if (this.#isClosed) return
    try {
      if (this.#failure === undefined && this.size > 0) await this.#seal.run()
    } finally {
      this.#isClosed = true
      closeSync(this.#entries)
      closeSync(this.#checkpoints)
      this.#unlock()
    }
  }

  #assertUsable(): void {
    if (this.#isClosed) throw unavailable('The log is closed', undefined)
    if (this.#failure !== undefined) throw unavailable('The log failed before', this.#failure)
  }
}

const decoder = new TextDecoder()

function unavailable(what: string, cause: unknown): GovernanceError {
  const why = cause instanceof Error ? `: ${cause.message}` : ''
  return new GovernanceError(`${what}${why}.`, [reason('AUDIT_UNAVAILABLE', undefined, what)], {
    hint: 'Nothing that needs the log may run. Check disk space and permissions, then open it again.',
    cause,
  })
}
