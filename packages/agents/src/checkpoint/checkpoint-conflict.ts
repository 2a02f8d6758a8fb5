import { SkeinError } from '@skein/base'

/** Thrown by `store.save` when the newest version is not the expected one. Nothing was saved. */
export class CheckpointConflict extends SkeinError {
  readonly sessionId: string
  /** Null: no version was expected. */
  readonly expected: string | null
  /** Null: there is no version. */
  readonly found: string | null

  constructor(sessionId: string, versions: { expected: string | null; found: string | null }) {
    const { expected, found } = versions
    const name = (id: string | null): string => (id === null ? 'none' : `"${id}"`)
    super(
      `The session ${JSON.stringify(sessionId)} was changed by another process: the newest version is ${name(found)}, expected was ${name(expected)}.`,
      {
        code: 'CHECKPOINT_CONFLICT',
        hint: 'Load the newest version and try again, or save without `expected` to make this one the newest.',
      },
    )
    this.sessionId = sessionId
    this.expected = expected
    this.found = found
  }
}
