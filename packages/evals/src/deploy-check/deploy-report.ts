import type { DifferenceKind, ReplayReport } from '../replay/replay-report.ts'
import type { RecordedUsage } from '../recorded/recorded-thread.ts'

/** What new definitions would do to recorded threads. */
export interface DeployReport {
  readonly threads: number
  readonly same: number
  /** Threads that differ, would ask, would no longer ask or fail, grouped by their first difference. */
  readonly groups: readonly DeployGroup[]
  /** Threads in `groups` that the budget ended after their first difference. */
  readonly cut: number
  /** Threads of which nothing is known: the budget or the time was over. */
  readonly unchecked: number
  readonly requests: { readonly recorded: number; readonly sent: number }
  readonly spent: RecordedUsage
}

/** Threads whose first difference is the same. */
export interface DeployGroup {
  readonly kind: DifferenceKind
  readonly summary: string
  readonly count: number
  /** At most ten threads, as examples. */
  readonly examples: readonly string[]
}

/** The outcome of one thread, one line of the progress file. */
export interface CheckedThread extends Pick<
  ReplayReport,
  'original' | 'end' | 'first' | 'requests' | 'spent'
> {
  /** How many events the thread had. If it has more now, it is checked again. */
  readonly seq: number
}
