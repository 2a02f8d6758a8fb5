import { encodeBase64 } from '@skein/base'
import type {
  AuditLog,
  Checkpoint,
  JournalEntry,
  JournalRecord,
  LogReadOptions,
} from '../journal/journal.ts'
import { signCheckpoint } from './checkpoint.ts'
import type { Envelope } from '../contract/envelope.ts'
import {
  generateKey,
  type PrivateJwk,
  type PublicJwk,
  type SigningKey,
  toSigningKey,
} from '../keys/keys.ts'
import { CompactRange, leafHash, proveConsistency, proveInclusion } from './merkle.ts'
import { GovernanceError, reason } from '../contract/reason.ts'

/** Options of `memoryLog`. */
export interface MemoryLogOptions {
  /** Name of the log in its checkpoints; `memory` by default. */
  readonly origin?: string
  /** The key that signs checkpoints; generated when it is first needed, if absent. */
  readonly key?: PrivateJwk | SigningKey
}

/** A log in memory that is lost when the process ends: for tests, browsers and a first look. */
export interface MemoryLog extends AuditLog {
  /** All lines, without line breaks. */
  readonly lines: readonly string[]
  /** Checkpoints made so far, oldest first. */
  readonly checkpoints: readonly Checkpoint[]
  /** Returns the public key for verifying checkpoints. */
  publicKey(): Promise<PublicJwk>
}

/** Creates an empty log in memory. */
export function memoryLog({ origin = 'memory', key }: MemoryLogOptions = {}): MemoryLog {
  const lines: string[] = []
  const checkpoints: Checkpoint[] = []
  const sequences = new LogSequences()
  const tree = new CompactRange()
  let signer: Promise<SigningKey> | undefined
  let sealedSize = -1
  const getSigner = (): Promise<SigningKey> =>
    (signer ??= (async () => toSigningKey(key ?? (await generateKey()).privateJwk))())

  return {
    lines,
    checkpoints,
    append(entry) {
      sequences.check(entry)
      const index = lines.push(entry.line) - 1
      sequences.advance(entry.request_id, entry.seq, index)
      return index
    },
    read: (options) => readLines(lines, options),
    async seal() {
      const signing = await getSigner()
      if (sealedSize === lines.length) return checkpoints.at(-1)!
      // The tree is built here and not in `append`, because checkpoints of a log in memory are rarely made.
      while (tree.size < lines.length) tree.append(leafHash(lines[tree.size]!))
      sealedSize = tree.size
      const head = { origin, size: tree.size, root: tree.root() }
      const checkpoint = await signCheckpoint(head, signing)
      checkpoints.push(checkpoint)
      return checkpoint
    },
    prove: async (index, size) =>
      (await proveInclusion(hashes(lines, size), index, size)).map(encodeBase64),
    consistency: async (from, to) =>
      (await proveConsistency(hashes(lines, to), from, to)).map(encodeBase64),
    publicKey: async () => (await getSigner()).jwk,
  }
}

async function* readLines(
  lines: readonly string[],
  { from = 0, requestId }: LogReadOptions = {},
): AsyncIterable<JournalRecord> {
  for (let index = from; index < lines.length; index++) {
    const line = lines[index]!
    if (requestId !== undefined && !line.includes(requestId)) continue
    // The line is not validated, because the governor wrote it. Use `verifyLog` for logs that others
    // stored.
    const envelope = JSON.parse(line) as Envelope
    if (requestId === undefined || envelope.request_id === requestId)
      yield { index, line, envelope }
  }
}

function* hashes(lines: readonly string[], size: number): Iterable<Uint8Array> {
  for (const line of lines.slice(0, size)) yield leafHash(line)
}

/** Where the entries of a request are in a log. */
interface RequestPlace {
  /** The `seq` that the request's next entry must have. */
  next: number
  /** Index of the request's first entry. */
  readonly first: number
  /** Byte offset of the first entry in the file; 0 in memory. */
  readonly offset: number
}

/**
 * Makes sure that the entries of a request are numbered without gaps. If two writers use the same `seq`,
 * the second one is refused.
 */
export class LogSequences {
  readonly #places = new Map<string, RequestPlace>()

  /**
   * Throws STATE_CONFLICT if this is not the next entry of its request, and SCHEMA_INVALID if it has a
   * line break.
   */
  check({ request_id, seq, line }: JournalEntry): void {
    const expected = this.#places.get(request_id)?.next ?? 0
    if (seq !== expected) {
      throw new GovernanceError(
        `Entry ${seq} of request ${request_id} was refused: the log expects entry ${expected}.`,
        [reason('STATE_CONFLICT', request_id, `expected ${expected}`)],
        {
          hint: 'Another process has continued this request. Read its journal again, then decide.',
        },
      )
    }
    if (line.includes('\n')) {
      throw new GovernanceError(`An entry of request ${request_id} is not one line.`, [
        reason('SCHEMA_INVALID', request_id, 'line break in an entry'),
      ])
    }
  }

  /** Records that an entry was written. */
  advance(request_id: string, seq: number, first: number, offset = 0): void {
    const place = this.#places.get(request_id)
    if (place) place.next = seq + 1
    else this.#places.set(request_id, { next: seq + 1, first, offset })
  }

  get(request_id: string): RequestPlace | undefined {
    return this.#places.get(request_id)
  }
}
