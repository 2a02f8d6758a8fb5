import {
  type Clock,
  type IdSource,
  randomIds,
  SkeinError,
  systemClock,
  systemTimer,
  withTimeLimit,
} from '@skein/base'
import type { Approvals } from '../contract/approval.ts'
import { type AuditLog, type Journal } from '../journal/journal.ts'
import type { GovernedContext, TaskClass } from '../contract/governed.ts'
import type { RollbackAction } from '../contract/envelope.ts'
import type { JournalItem } from '../journal/events.ts'
import type { Policy } from '../contract/policy.ts'
import { type PayloadStore, memoryPayloads } from '../contract/evidence.ts'

/** The options of `governor`. Only `id` and `audit` are required. */
export interface GovernorOptions {
  /** The name of this governor in the log. Approval tokens must name it as their audience. */
  readonly id: string
  readonly audit: Journal & Partial<Pick<AuditLog, 'seal'>>
  /** The store of arguments, results and other payloads; in memory by default. */
  readonly payloads?: PayloadStore
  /** Checks approval tokens. Without it, a call that needs approval never runs. */
  readonly approvals?: Approvals
  /**
   * The policies for every write, together with the task class's own policy. Without any policy all
   * writes are denied.
   */
  readonly policy?: Policy | readonly Policy[]
  /**
   * The task classes whose requests `recover` may find in the log. Task classes passed to `run` and
   * `resume` are added automatically.
   */
  readonly tasks?: readonly TaskClass[]
  /**
   * Functions that carry out rollback actions, by the type of the action. The types `tool_call` and
   * `manual` need none.
   */
  readonly undoers?: Readonly<Record<string, Undoer>>
  /**
   * Returns the requests that other governors have made for a request of this one, in the same journal: those of
   * agents that work for it, in other processes or threads. When the request fails, their writes are undone with its own,
   * in the reverse order of the journal. Without it, a request has only the children of `run.child`.
   */
  readonly delegates?: (requestId: string) => Promise<readonly Delegate[]>
  /** Called with every entry after it was passed to the log, for telemetry. Its errors are ignored. */
  readonly observe?: (item: JournalItem) => void
  readonly clock?: Clock
  /** Generates the UUIDs of requests and traces. */
  readonly ids?: IdSource
  readonly timer?: Timer
  readonly limits?: GovernorLimits
}

/** A request that another governor has made for a request of this one. */
export interface Delegate {
  readonly request_id: string
  /** The tools and rules of the request, to undo its writes; undefined if they are not known here any more. */
  readonly task: TaskClass | undefined
  /** Whether its agent still works. If its request has not ended either, its writes are left alone. */
  readonly isActive?: boolean
}

/**
 * Carries out a rollback action of one type. If it throws, it is called again, up to `undoTries` times in
 * all.
 */
export type Undoer = (action: RollbackAction, context: GovernedContext) => unknown

/** Limits on the governor's own work: how long it waits and how often it tries. */
export interface GovernorLimits {
  /** How long a policy may take, 5 s by default; a policy that takes longer counts as a denial. */
  readonly policyTimeoutMs?: number
  /** How long an approval request is open; 24 h by default. */
  readonly approvalTtlMs?: number
  /** How long a probe, or one try to undo a write, may take; 30 s by default. */
  readonly undoTimeoutMs?: number
  /** How many times the governor tries to undo one write; 3 by default. */
  readonly undoTries?: number
  /** How long an aborted tool may take to end before its call is in doubt; 1 s by default. */
  readonly graceMs?: number
}

/** The options of a governor with all defaults filled in. */
export interface GovernorCore extends Required<
  Omit<GovernorOptions, 'approvals' | 'observe' | 'policy' | 'limits' | 'tasks'>
> {
  readonly approvals: Approvals | undefined
  readonly observe: ((item: JournalItem) => void) | undefined
  readonly policies: readonly Policy[]
  readonly limits: Required<GovernorLimits>
  readonly tasks: Map<string, TaskClass>
}

/** Returns the options of a governor with all defaults filled in. */
export function resolveOptions(options: GovernorOptions): GovernorCore {
  const { policy = [], tasks = [], approvals, observe, limits = {} } = options
  // Each limit is destructured with its default, because spreading would let a limit given as undefined
  // override its default.
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
    delegates: options.delegates ?? noDelegates,
    clock: options.clock ?? systemClock,
    ids: options.ids ?? randomIds(),
    timer: options.timer ?? systemTimer,
    limits: { policyTimeoutMs, approvalTtlMs, graceMs, undoTimeoutMs, undoTries },
  }
}

const noDelegates: GovernorCore['delegates'] = () => Promise.resolve([])

/**
 * Calls `fire` after `ms` milliseconds and returns a function that cancels the timer. Tests pass their
 * own timer to the governor, so that they need not wait.
 */
export type Timer = (ms: number, fire: () => void) => () => void

/** The error that `withTimeout` throws. */
export class TimeoutError extends SkeinError {
  constructor(ms: number) {
    super(`There was no answer within ${ms} ms.`, { code: 'TIMEOUT' })
  }
}

/**
 * Waits for `work` for at most `ms` milliseconds; after that, aborts the signal of `work` and throws
 * TimeoutError.
 */
export function withTimeout<T>(
  work: (signal: AbortSignal) => Promise<T>,
  ms: number,
  timer: Timer,
): Promise<T> {
  return withTimeLimit(work, {
    limitMs: ms,
    timer,
    toError: (limitMs) => new TimeoutError(limitMs),
  })
}
