import type { RuntimeEvent } from '@skein/runtime'

/** What playing a thread back has shown. */
export interface PlayBackReport {
  readonly threadId: string
  readonly isSame: boolean
  /** The events that were produced and compared, of all threads of the tree. */
  readonly events: number
  /** The first event that differs; absent if none does. */
  readonly difference?: PlayBackDifference | undefined
}

/** Where the loop did something else than the log says. */
export interface PlayBackDifference {
  readonly threadId: string
  /** The number of the recorded event at this place. */
  readonly seq: number
  readonly recorded: RuntimeEvent | undefined
  /** What the loop made at this place; absent if it made nothing. */
  readonly produced: RuntimeEvent | undefined
  readonly message: string
}
