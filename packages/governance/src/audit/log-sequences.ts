import type { JournalEntry } from '../audit-log.ts'
import { GovernanceError, reason } from '../reason.ts'

/** Where a request stands in a log. */
export interface RequestPlace {
  /** The `seq` its next entry must have. */
  next: number
  /** Index of its first entry. */
  readonly first: number
  /** Where the first entry begins in the file; 0 in memory. */
  readonly offset: number
}

/** Keeps every request's entries contiguous: of two writers with the same `seq`, one loses. */
export class LogSequences {
  readonly #places = new Map<string, RequestPlace>()

  /** Throws STATE_CONFLICT unless this is the next entry of its request, on one line. */
  check({ request_id, seq, line }: JournalEntry): void {
    const expected = this.#places.get(request_id)?.next ?? 0
    if (seq !== expected) throw conflict(request_id, seq, expected)
    if (line.includes('\n')) throw notOneLine(request_id)
  }

  /** Counts an entry that is in the log now. */
  advance(request_id: string, seq: number, first: number, offset = 0): void {
    const place = this.#places.get(request_id)
    if (place) place.next = seq + 1
    else this.#places.set(request_id, { next: seq + 1, first, offset })
  }

  get(request_id: string): RequestPlace | undefined {
    return this.#places.get(request_id)
  }
}

function conflict(request_id: string, seq: number, expected: number): GovernanceError {
  return new GovernanceError(
    `Entry ${seq} of request ${request_id} was refused: the log expects entry ${expected}.`,
    [reason('STATE_CONFLICT', request_id, `expected ${expected}`)],
    { hint: 'Another writer went on with this request. Read its journal and decide anew.' },
  )
}

function notOneLine(request_id: string): GovernanceError {
  return new GovernanceError(`An entry of request ${request_id} is not one line.`, [
    reason('SCHEMA_INVALID', request_id, 'line break in an entry'),
  ])
}
