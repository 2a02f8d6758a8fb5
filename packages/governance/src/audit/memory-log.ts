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
  /** Signs checkpoints; made at the first seal if absent. */
  readonly key?: PrivateJwk | SigningKey
}

/** A log that lives as long as the process: for tests, browsers and a first look. */
export interface MemoryLog extends AuditLog {
  /** The lines, as a file would hold them without line breaks. */
  readonly lines: readonly string[]
  /** Checkpoints made so far, oldest first. */
  readonly checkpoints: readonly Checkpoint[]
  /** The key to verify checkpoints with. */
  publicKey(): Promise<PublicJwk>
}

/** Makes an empty log in memory. */
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
      // The tree is built here and not in `append`: a log in memory is sealed seldom, if ever.
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
    // Not validated: these are lines that the governor wrote. `verifyLog` is for logs that others kept.
    const envelope = JSON.parse(line) as Envelope
    if (requestId === undefined || envelope.request_id === requestId)
      yield { index, line, envelope }
  }
}

function* hashes(lines: readonly string[], size: number): Iterable<Uint8Array> {
  for (const line of lines.slice(0, size)) yield leafHash(line)
}

/** Where a request is in a log. */
interface RequestPlace {
  /** The `seq` its next entry must have. */
  next: number
  /** Index of its first entry. */
  readonly first: number
  /** Where the first entry begins in the file; 0 in memory. */
  readonly offset: number
}

/** Keeps every request's entries contiguous: of two writers with the same `seq`, the second is refused. */
export class LogSequences {
  readonly #places = new Map<string, RequestPlace>()

  /** Throws STATE_CONFLICT unless this is the next entry of its request, on one line. */
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

  /** Called when an entry has been written. */
  advance(request_id: string, seq: number, first: number, offset = 0): void {
    const place = this.#places.get(request_id)
    if (place) place.next = seq + 1
    else this.#places.set(request_id, { next: seq + 1, first, offset })
  }

  get(request_id: string): RequestPlace | undefined {
    return this.#places.get(request_id)
  }
}
