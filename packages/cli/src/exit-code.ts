/** What the command says to a script. */
export const ExitCode = {
  Done: 0,
  Failed: 1,
  Usage: 2,
  /** Somebody has to decide; the thread is printed. */
  Waiting: 3,
  /** A gate refused: nothing was delivered. */
  FailedSafe: 4,
  /** A limit of steps, turns, tokens, cost or time. */
  Limit: 5,
  TimedOut: 124,
  Interrupted: 130,
} as const

export type ExitCode = (typeof ExitCode)[keyof typeof ExitCode]

interface Ended {
  readonly outcome: 'completed' | 'failed' | 'stopped' | 'terminated' | 'waiting'
  readonly reason: string
}

const LIMITS: ReadonlySet<string> = new Set([
  'budget_exceeded',
  'max_side_steps',
  'max_session_turns',
])
const REFUSALS: ReadonlySet<string> = new Set(['fail_safe', 'blocked'])

/** The code for how a session ended. */
export function exitCodeOf({ outcome, reason }: Ended): ExitCode {
  switch (outcome) {
    case 'completed':
      return ExitCode.Done
    case 'waiting':
      return ExitCode.Waiting
    case 'stopped':
      return ExitCode.Interrupted
    case 'terminated':
      return ExitCode.Failed
    case 'failed':
      if (REFUSALS.has(reason)) return ExitCode.FailedSafe
      return LIMITS.has(reason) ? ExitCode.Limit : ExitCode.Failed
  }
}
