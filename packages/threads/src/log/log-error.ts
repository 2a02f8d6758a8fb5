import { ThreadError } from '../issue.ts'

/** Thrown for a damaged line in a log. */
export class LogCorruptError extends ThreadError {
  /** The line number, counted from 1 as in editors. */
  readonly line: number

  constructor(line: number) {
    super(`Line ${line} of the thread log is damaged: its checksum does not match.`, {
      code: 'LOG_CORRUPT',
      hint: 'Restore the file from a copy. Lines before it are intact; { repair: true } keeps only those.',
    })
    this.line = line
  }
}

/** Thrown when another writer appended to the log first. */
export class LogConflictError extends ThreadError {
  readonly expected: number
  /**
   * The actual number of turns; undefined when another process writes to the log, because this process has not
   * read the new turns.
   */
  readonly actual: number | undefined

  constructor(expected: number, actual: number | undefined) {
    super(
      actual === undefined
        ? `Another process writes to the thread log, of which ${expected} turns were read.`
        : `The thread log has ${actual} turns where ${expected} were expected.`,
      {
        code: 'LOG_CONFLICT',
        hint: 'Read the new turns, decide again, and append with the new length. Nothing was written.',
      },
    )
    this.expected = expected
    this.actual = actual
  }
}
