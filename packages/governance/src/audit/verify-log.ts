import { sha256 } from '@skein/base'
import type { Checkpoint } from '../journal/journal.ts'
import {
  countWitnesses,
  parseCheckpoint,
  type ParsedCheckpoint,
  verifyCheckpoint,
  type Witness,
} from './checkpoint.ts'
import type { Envelope } from '../contract/envelope.ts'
import { type LogSource, splitLines } from './log-lines.ts'
import { readEnvelope } from './read-envelope.ts'
import { type PublicJwk, toVerifyKey, type VerifyKey } from '../keys/keys.ts'
import { LogOrder, type OrderFault } from './log-order.ts'
import { LogSemantics } from './log-semantics.ts'
import { CompactRange, isEqualHash } from './merkle.ts'

/**
 * The kinds of faults of a log. `torn`: the last line is incomplete. `semantics`: a governor never writes
 * such entries. `fork`: the log is signed, but differs from the trusted checkpoint, or its checkpoints do
 * not grow.
 */
export type LogFaultKind =
  'edit' | 'insert' | 'reorder' | 'truncate' | 'fork' | 'torn' | 'signature' | 'semantics'

/** One fault of a log. */
export interface LogFault {
  /** The entry at which the fault was noticed; its cause is at this entry or before it. */
  readonly index: number
  readonly kind: LogFaultKind
  readonly detail?: string
}

/** The result of verifying a log. */
export interface LogVerdict {
  /** True if no fault was found. How much this proves depends on `sealed` and `pinned`. */
  readonly ok: boolean
  /** The number of entries in the log. */
  readonly size: number
  /**
   * The number of entries that a verified checkpoint covers. Changes of the remaining entries may not be
   * detected.
   */
  readonly sealed: number
  /**
   * True if the log was compared with a trusted checkpoint. Without one, a log that was rewritten as a
   * whole passes.
   */
  readonly pinned: boolean
  readonly faults: readonly LogFault[]
}

/** The options of `verifyLog`. */
export interface VerifyLogOptions {
  /** Public keys of the log. */
  readonly keys: readonly (PublicJwk | VerifyKey)[]
  /** The log's own checkpoints, oldest first. */
  readonly checkpoints?: Iterable<Checkpoint> | AsyncIterable<Checkpoint>
  /** A checkpoint that you kept where the log's operator cannot change it. */
  readonly trusted?: Checkpoint
  /** At least `quorum` of the known witnesses must have cosigned the newest checkpoint. */
  readonly witnesses?: { readonly known: readonly Witness[]; readonly quorum: number }
}

const MAX_FAULTS = 100

/**
 * Reads a log once and lists its faults, at most 100. Memory grows with the logarithm of the log's size
 * and with the number of requests that are open at the same time.
 */
export async function verifyLog(source: LogSource, options: VerifyLogOptions): Promise<LogVerdict> {
  const audit = new LogAudit(options)
  await audit.begin()
  for await (const lines of splitLines(source)) {
    for (const { leaf, isWhole } of lines) {
      if (isWhole) audit.accept(leaf)
      else audit.torn()
      if (audit.isAtHead) await audit.compareHead()
    }
  }
  return audit.end()
}

class LogAudit {
  readonly #options: VerifyLogOptions
  readonly #keys: readonly VerifyKey[]
  readonly #tree = new CompactRange()
  readonly #order = new LogOrder()
  readonly #semantics = new LogSemantics()
  readonly #faults: LogFault[] = []
  readonly #heads: AsyncIterator<Checkpoint>
  /**
   * Wrongly numbered or unreadable entries since the last checkpoint that matched. The next checkpoint shows
   * whether the entries were signed in this form.
   */
  #disorder: OrderFault[] = []
  #trusted: ParsedCheckpoint | undefined
  #head: ParsedCheckpoint | undefined
  #newest: ParsedCheckpoint | undefined
  #sealed = 0
  #isTampered = false
  /**
   * True if the lines do not match the trusted checkpoint. Later checkpoints of the log show whether the
   * log's own signatures match the lines.
   */
  #isForked = false

  constructor(options: VerifyLogOptions) {
    this.#options = options
    this.#keys = options.keys.map(toVerifyKey)
    const checkpoints = options.checkpoints ?? []
    this.#heads = (async function* () {
      yield* checkpoints
    })()
  }

  async begin(): Promise<void> {
    const { trusted } = this.#options
    if (trusted !== undefined) {
      this.#trusted = await verifyCheckpoint(trusted, this.#keys)
      if (this.#trusted === undefined)
        this.#fault('signature', 'the pinned checkpoint', parseCheckpoint(trusted)?.size ?? 0)
    }
    await this.#nextHead()
    if (this.isAtHead) await this.compareHead()
  }

  /** True when the log's next checkpoint, or the trusted one, covers exactly the entries read so far. */
  get isAtHead(): boolean {
    const { size } = this.#tree
    return this.#head?.size === size || this.#trusted?.size === size
  }

  accept(leaf: Uint8Array): void {
    const index = this.#tree.size
    this.#tree.append(sha256(leaf))
    const envelope = readEnvelope(leaf.subarray(1))
    if (envelope === undefined) this.#disorder.push({ index, kind: 'edit' })
    else this.#follow(index, envelope)
  }

  #follow(index: number, envelope: Envelope): void {
    const { request_id, metadata } = envelope
    const fault = this.#order.accept(index, request_id, Number(metadata?.['uaicp:seq']))
    if (fault) this.#disorder.push(fault)
    const problem = this.#semantics.accept(envelope)
    if (problem !== undefined && !fault) this.#fault('semantics', problem, index)
    if (this.#semantics.expected(request_id) === 0) this.#order.forget(request_id)
  }

  torn(): void {
    this.#fault('torn', 'the last line does not end')
  }

  /** Compares the tree with the checkpoints that have its size. */
  async compareHead(): Promise<void> {
    const root = this.#tree.root()
    const { size } = this.#tree
    while (this.#head?.size === size) {
      if (isEqualHash(this.#head.root, root)) this.#agree(size)
      else this.#blame(size)
      await this.#nextHead()
    }
    if (this.#trusted?.size !== size) return
    if (isEqualHash(this.#trusted.root, root)) this.#agree(size)
    else if (this.#head || this.#sealed >= size) this.#isForked = true
    else this.#blame(size)
  }

  /**
   * Handles a checkpoint that matches: the lines were signed as they are, so entries that are out of
   * order were written in that order.
   */
  #agree(size: number): void {
    this.#sealed = Math.max(this.#sealed, size)
    for (const { index } of this.#disorder) this.#fault('semantics', 'entries out of order', index)
    this.#disorder = []
  }

  /**
   * Handles a checkpoint that does not match: the lines were changed after signing, and wrongly numbered
   * lines show how (inserted, moved or removed).
   */
  #blame(size: number): void {
    if (this.#disorder.length === 0) this.#tampered({ index: size - 1, kind: 'edit' })
    for (const fault of this.#disorder) this.#tampered(fault)
    this.#disorder = []
    this.#isTampered = true
  }

  #tampered({ index, kind }: { readonly index: number; readonly kind: LogFaultKind }): void {
    // One change makes every later checkpoint wrong, so only the first mismatch is reported.
    if (!this.#isTampered)
      this.#fault(kind, 'entries are not those that were signed', Math.max(0, index))
  }

  async #nextHead(): Promise<void> {
    for (;;) {
      const { done, value } = await this.#heads.next()
      if (done) {
        this.#head = undefined
        return
      }
      const head = await verifyCheckpoint(value, this.#keys)
      const isOurs = head && (!this.#trusted || head.origin === this.#trusted.origin)
      if (!isOurs) this.#fault('signature', 'a checkpoint is not signed by the log')
      else if (head.size < this.#tree.size)
        this.#fault('fork', 'checkpoints do not grow', head.size)
      else {
        this.#head = head
        this.#newest = head
        return
      }
    }
  }

  async end(): Promise<LogVerdict> {
    const { size } = this.#tree
    // If the log's own checkpoints match its lines, its writer signed another history than the trusted one.
    const pinnedSize = this.#trusted?.size ?? 0
    if (this.#isForked && this.#sealed >= pinnedSize)
      this.#fault('fork', 'another log than the pinned one', Math.max(0, pinnedSize - 1))
    else if (this.#isForked) this.#blame(pinnedSize)
    const signedSize = Math.max(await this.#largestHead(), this.#trusted?.size ?? 0)
    if (size < signedSize)
      this.#fault('truncate', `${signedSize - size} signed entries are missing`, size)
    for (const { index, kind } of this.#disorder) this.#fault(kind, 'unsealed entries', index)
    await this.#askWitnesses()
    const faults = this.#faults
    const hasPin = this.#trusted !== undefined
    return { ok: faults.length === 0, size, sealed: this.#sealed, pinned: hasPin, faults }
  }

  async #largestHead(): Promise<number> {
    let largest = 0
    while (this.#head) {
      largest = Math.max(largest, this.#head.size)
      await this.#nextHead()
    }
    return largest
  }

  async #askWitnesses(): Promise<void> {
    const { witnesses } = this.#options
    if (witnesses === undefined) return
    const count = this.#newest ? await countWitnesses(this.#newest, witnesses.known) : 0
    if (count < witnesses.quorum)
      this.#fault('signature', `${count} of ${witnesses.quorum} witnesses`, this.#newest?.size ?? 0)
  }

  #fault(kind: LogFaultKind, detail: string, index: number = this.#tree.size): void {
    if (this.#faults.length < MAX_FAULTS) this.#faults.push({ index, kind, detail })
  }
}
