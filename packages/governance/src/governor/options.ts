import { type Clock, type IdSource, randomIds, SkeinError, systemClock } from '@skein/base'
import type { Approvals } from '../contract/approval.ts'
import {
  type AuditLog,
  type Journal,
  memoryPayloads,
  type PayloadStore,
} from '../journal/journal.ts'
import type { GovernedContext, TaskClass } from '../contract/governed.ts'
import type { RollbackAction } from '../contract/envelope.ts'
import type { JournalItem } from '../journal/events.ts'
import type { Policy } from '../contract/policy.ts'

/** What a governor is made of. Only `id` and `audit` have no default. */
export interface GovernorOptions {
  /** Names this governor in the log; approvals are addressed to it. */
  readonly id: string
  readonly audit: Journal & Partial<Pick<AuditLog, 'seal'>>
  /** Arguments, results and other payloads; in memory by default. */
  readonly payloads?: PayloadStore
  /** Without it nothing that needs approval ever runs. */
  readonly approvals?: Approvals
  /** Judges every write, together with the task class's own policy. Without any, no write is allowed. */
  readonly policy?: Policy | readonly Policy[]
  /** Task classes whose requests `recover` may find in the log. Those given to `run` and `resume` are known too. */
  readonly tasks?: readonly TaskClass[]
  /** Functions that undo rollback actions of types other than `tool_call` and `manual`, by type. */
  readonly undoers?: Readonly<Record<string, Undoer>>
  /** Called with every entry after it was given to the log. For telemetry; its errors are ignored. */
  readonly observe?: (item: JournalItem) => void
  readonly clock?: Clock
  /** UUIDs, for requests and traces. */
  readonly ids?: IdSource
  readonly timer?: Timer
  readonly limits?: GovernorLimits
}

/** Undoes a rollback action of one type. Throwing makes it be tried again. */
export type Undoer = (action: RollbackAction, context: GovernedContext) => unknown

/** Times and counts that bound the governor's own work. */
export interface GovernorLimits {
  /** 5 s by default; a policy that takes longer has denied. */
  readonly policyTimeoutMs?: number
  /** How long an approval request is open; 24 h by default. */
  readonly approvalTtlMs?: number
  /** How long a probe, or one try to undo a write, may take; 30 s by default. */
  readonly undoTimeoutMs?: number
  /** How often undoing one write is tried; 3 by default. */
  readonly undoTries?: number
  /** How long an aborted tool may still answer before its effect is in doubt; 1 s by default. */
  readonly graceMs?: number
}

/** Options with all defaults in place. */
export interface GovernorCore extends Required<
  Omit<GovernorOptions, 'approvals' | 'observe' | 'policy' | 'limits' | 'tasks'>
> {
  readonly approvals: Approvals | undefined
  readonly observe: ((item: JournalItem) => void) | undefined
  readonly policies: readonly Policy[]
  readonly limits: Required<GovernorLimits>
  readonly tasks: Map<string, TaskClass>
}

/** Fills in the defaults. */
export function resolveOptions(options: GovernorOptions): GovernorCore {
  const { policy = [], tasks = [], approvals, observe, limits = {} } = options
  // One by one: a limit that is given as undefined has to get its default too.
  const { policyTimeoutMs = 5_000, approvalTtlMs = 24 * 3_600_000, graceMs = 1_000 } = limits
  const { undoTimeoutMs = 30_000, undoTries = 3 } = limits
  return {
    id: options.id,
    audit: options.audit,
    payloads: options.payloads ?? memoryPayloads(),
    approvals,
    observe,
    policies: [policy].flat() as readonly Policy[],
    tasks: new Map(tasks.map((task) => [task.name, task])),
    undoers: options.undoers ?? {},
    clock: options.clock ?? systemClock,
    ids: options.ids ?? randomIds(),
    timer: options.timer ?? systemTimer,
    limits: { policyTimeoutMs, approvalTtlMs, graceMs, undoTimeoutMs, undoTries },
  }
}

/** Calls `fire` after `ms`; returns the function that cancels it. A parameter, so that tests need not wait. */
export type Timer = (ms: number, fire: () => void) => () => void

/** The timers of the platform. */
const systemTimer: Timer = (ms, fire) => {
  // Longer delays overflow the platform's 32-bit counter and would fire at once.
  const id = setTimeout(fire, Math.min(ms, 0x7fff_ffff))
  return () => clearTimeout(id)
}

/** Thrown by `withTimeout`. */
export class TimeoutError extends SkeinError {
  constructor(ms: number) {
    super(`There was no answer within ${ms} ms.`, { code: 'TIMEOUT' })
  }
}

/** Waits for `work` at most `ms`; then aborts its signal and throws TimeoutError. */
export function withTimeout<T>(
  work: (signal: AbortSignal) => Promise<T>,
  ms: number,
  timer: Timer,
): Promise<T> {
  const controller = new AbortController()
  return new Promise<T>((resolve, reject) => {
    const cancel = timer(ms, () => {
      const error = new TimeoutError(ms)
      controller.abort(error)
      reject(error)
    })
    work(controller.signal).then(resolve, reject).finally(cancel)
  })
}
