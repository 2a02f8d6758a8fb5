import type { StoredEvent } from '../event.ts'
import { RuntimeError } from '../error.ts'
import { endsDraft } from './live-draft.ts'

/**
 * What a reader has: the log up to a number, and how much of what the running step has shown since.
 * Its text is the id of the event given last.
 */
export class Cursor {
  seq: number
  /** Pieces of the draft; 0 when there is none. */
  count: number
  /** The last event given that ended a draft. */
  endedAt = 0

  constructor(after: string | undefined) {
    const found = /^(\d{1,15})(?:\.(\d{1,15}))?$/.exec(after ?? '0')
    if (!found)
      throw new RuntimeError(`${JSON.stringify(after)} is not the id of an event.`, {
        code: 'INPUT_INVALID',
        hint: 'Ids look like `12` or `12.3`; without one, everything is given from the beginning.',
      })
    this.seq = Number(found[1])
    this.count = Number(found[2] ?? 0)
  }

  /** Goes past an event of the log. */
  pass({ seq, event }: StoredEvent): void {
    this.seq = seq
    if (!endsDraft(event)) return
    this.count = 0
    this.endedAt = seq
  }

  /**
   * An event of the log that came while a step was speaking carries a fraction too: without it nobody
   * could tell a reader that has the first half of the speech from one that has only the log.
   */
  get id(): string {
    return this.count > 0 ? `${this.seq}.${this.count}` : `${this.seq}`
  }
}
