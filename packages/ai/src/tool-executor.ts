import type { Clock } from '@skein/base'
import { linkAbort } from './abort-race.ts'
import type { ToolExecutionEndEvent, ToolExecutionStartEvent } from './event.ts'
import { runToolCall, type CallReport } from './run-tool-call.ts'
import { Schedule } from './schedule.ts'
import { cancelledError } from './to-upp-error.ts'
import type { Tool, ToolCall, ToolContext, ToolOutcome, ToolUseStrategy } from './tool.ts'
import { toToolExecution } from './tool-result.ts'
import type { Warning } from './warning.ts'

/** One batch of calls from one assistant message; the only place where tools run. */
export interface ToolBatch {
  readonly calls: readonly ToolCall[]
  readonly tools: readonly Tool[]
  readonly signal: AbortSignal
  readonly clock: Clock
  /** Default `parallel`; `sequential` runs calls one by one in call order. */
  readonly mode?: 'parallel' | 'sequential'
  readonly strategy?: ToolUseStrategy
  /** Extra fields of the second argument of `run`; the agent layer passes its own. */
  readonly context?: (call: ToolCall) => object
  /** Names of tools that succeeded earlier in this conversation: they satisfy `dependsOn`. */
  readonly succeeded?: ReadonlySet<string>
  /** Outcomes known already, by call id: they are not run again (resume). */
  readonly settled?: ReadonlyMap<string, ToolOutcome>
  /** Block index of each call in its message, for the events; default: position in `calls`. */
  readonly indexes?: ReadonlyMap<string, number>
  readonly hooks?: ToolHooks
  /** Awaited before a call starts and after it ended, so that a journal can make it durable. */
  readonly commit?: (effect: ToolEffect) => void | Promise<void>
  /** Who asked for the calls; named in errors. */
  readonly provider?: string
}

/** The middleware's view of each call. */
export interface ToolHooks {
  onToolCall?(call: ToolCall): void | Promise<void>
  onToolResult?(call: ToolCall, result: unknown, outcome: ToolOutcome): void | Promise<void>
}

/** What a journal is told about a call. */
export type ToolEffect =
  | { readonly type: 'call_start'; readonly call: ToolCall }
  | { readonly type: 'call_end'; readonly call: ToolCall; readonly outcome: ToolOutcome }

/** One settled call; the list keeps call order. */
export interface SettledCall {
  /** With the arguments that ran, which `onBeforeCall` may have replaced. */
  readonly call: ToolCall
  readonly outcome: ToolOutcome
  readonly durationMs: number
}

/** What became of a batch. */
export interface BatchResult {
  /** Calls that wait for a deferred one are not in it. */
  readonly settled: readonly SettledCall[]
  readonly warnings: readonly Warning[]
}

/** The events that running tools give. */
export type ToolExecutionEvent = ToolExecutionStartEvent | ToolExecutionEndEvent
export type { ToolContext }

/**
 * Runs the calls of one message and tells of each start and end while it happens. Throws
 * `CANCELLED` as soon as the signal aborts, also when a tool does not listen to it, and whatever a
 * hook or `commit` throws; calls that have not started are then skipped.
 */
export async function* executeTools(
  batch: ToolBatch,
): AsyncGenerator<readonly ToolExecutionEvent[], BatchResult> {
  const execution = new Execution(batch)
  try {
    execution.startReady()
    for (;;) {
      const events = execution.takeEvents()
      if (events.length > 0) yield events
      else if (execution.isOver()) return execution.result()
      else await execution.change()
    }
  } finally {
    execution.close()
  }
}

/** The state of one batch between its tools, which run freely, and its reader, which may be slow. */
class Execution {
  readonly #batch: ToolBatch
  readonly #tools: ReadonlyMap<string, Tool>
  readonly #schedule: Schedule
  readonly #controller = new AbortController()
  readonly #unlink: () => void
  readonly #settled: (SettledCall | undefined)[]
  #events: ToolExecutionEvent[] = []
  #wake: () => void = () => {}
  #failure: { readonly error: unknown } | undefined

  constructor(batch: ToolBatch) {
    const { calls, tools, strategy, mode = 'parallel', succeeded = new Set() } = batch
    this.#batch = batch
    this.#tools = new Map(tools.map((tool) => [tool.name, tool]))
    const maxConcurrency = Math.max(1, strategy?.maxConcurrency ?? Infinity)
    this.#schedule = new Schedule({ calls, tools: this.#tools, mode, maxConcurrency, succeeded })
    this.#settled = calls.map(() => undefined)
    this.#unlink = linkAbort(batch.signal, this.#controller)
    this.#controller.signal.addEventListener('abort', () => this.#wake(), { once: true })
    calls.forEach((call, position) => this.#reuse(call, position))
  }

  startReady(): void {
    if (this.#controller.signal.aborted) return
    for (const position of this.#schedule.next()) void this.#run(position)
  }

  takeEvents(): readonly ToolExecutionEvent[] {
    const events = this.#events
    if (events.length > 0) this.#events = []
    return events
  }

  isOver(): boolean {
    if (this.#failure) throw this.#failure.error
    const { signal, provider = 'skein' } = this.#batch
    if (signal.aborted) throw cancelledError(signal, { provider, modality: 'llm' })
    return this.#schedule.isOver
  }

  change(): Promise<void> {
    return new Promise((resolve) => (this.#wake = resolve))
  }

  result(): BatchResult {
    return {
      settled: this.#settled.filter((one) => one !== undefined),
      warnings: this.#schedule.warnings,
    }
  }

  /** Whatever still runs is told to stop and no longer listened to. */
  close(): void {
    this.#unlink()
    if (!this.#schedule.isOver) this.#controller.abort()
  }

  #reuse(call: ToolCall, position: number): void {
    const outcome = this.#batch.settled?.get(call.toolCallId)
    if (outcome) this.#settle(position, { call, outcome, durationMs: 0 })
  }

  /** Never rejects: what goes wrong outside the tool fails the batch. */
  async #run(position: number): Promise<void> {
    const call = this.#batch.calls[position]!
    try {
      const settled = await runToolCall(call, {
        batch: this.#batch,
        tool: this.#tools.get(call.toolName),
        refusal: this.#schedule.missingDependency(position),
        signal: this.#controller.signal,
        report: (report) => this.#report(call, position, report),
      })
      this.#settle(position, settled)
      this.startReady()
    } catch (error) {
      this.#failure ??= { error }
      this.#controller.abort()
    }
    this.#wake()
  }

  #settle(position: number, settled: SettledCall): void {
    this.#settled[position] = settled
    this.#schedule.settle(position, settled.outcome)
  }

  #report(call: ToolCall, position: number, report: CallReport): void {
    const index = this.#batch.indexes?.get(call.toolCallId) ?? position
    this.#events.push(toEvent(report, index, this.#batch.clock.now()))
    this.#wake()
  }
}

function toEvent(report: CallReport, index: number, timestamp: number): ToolExecutionEvent {
  if (report.type === 'start') {
    const { toolCallId, toolName, arguments: args } = report.call
    return {
      type: 'tool_execution_start',
      index,
      delta: { toolCallId, toolName, arguments: args, timestamp },
    }
  }
  const { toolCallId, toolName, result, isError, duration } = toToolExecution(report.settled)
  return {
    type: 'tool_execution_end',
    index,
    delta: { toolCallId, toolName, result, isError, timestamp, durationMs: duration },
  }
}
