import { linkAbort } from '@skein/base'
import type { ToolExecutionEndEvent, ToolExecutionStartEvent } from '../contract/event.ts'
import { type EmitEvents, EventReader } from '../contract/event-reader.ts'
import { cancelledError } from '../contract/error.ts'
import type { Tool, ToolCall, ToolOutcome } from '../contract/tool.ts'
import type { Warning } from '../contract/turn.ts'
import { abortedOutcome } from './run-in-time.ts'
import { type CallReport, type CallSettings, runToolCall } from './call.ts'
import { doneOutcome, type SettledCall, toToolExecution } from './outcome.ts'
import { Schedule } from './schedule.ts'

/** One batch of calls from one assistant message. */
export interface ToolBatch extends CallSettings {
  readonly calls: readonly ToolCall[]
  readonly signal: AbortSignal
  /** Default `parallel`; `sequential` runs calls one by one in call order. */
  readonly mode?: 'parallel' | 'sequential'
  /** Names of tools that succeeded earlier in this conversation; they satisfy `dependsOn`. */
  readonly succeeded?: ReadonlySet<string>
  /** Outcomes that are already known, by call id; after a resume, those calls are not run again. */
  readonly settled?: ReadonlyMap<string, ToolOutcome>
  /** The block index of each call in its message, used in events. Default: its position in `calls`. */
  readonly indexes?: ReadonlyMap<string, number>
  /**
   * Called once if the signal aborts, before `CANCELLED` is thrown: with every call, in call order, that has an outcome,
   * that was not run, or that was dropped while it ran.
   */
  readonly onCancel?: (settled: readonly SettledCall[]) => void
}

/** The result of a batch. */
export interface BatchResult {
  /** The calls that have an outcome, in call order. Calls that wait for a deferred call are missing. */
  readonly settled: readonly SettledCall[]
  readonly warnings: readonly Warning[]
}

/** The events that running tools produce. */
export type ToolExecutionEvent = ToolExecutionStartEvent | ToolExecutionEndEvent

/**
 * Runs the calls of one message and yields each start and end as it happens. Otherwise it does what `settleTools` does.
 */
export function executeTools(
  batch: ToolBatch,
): AsyncGenerator<readonly ToolExecutionEvent[], BatchResult> {
  return new EventReader((emit) => settleTools(batch, emit))
}

/**
 * Runs the calls of one message and reports each start and end with `emit`, if that is given. Throws `CANCELLED` as soon as the signal
 * aborts, even if a tool ignores the signal, unless a write that runs still has its grace (`CallPorts.settlesAfter`).
 * Rethrows errors of a hook, a gate or a journal, after the calls that have an outcome are journalled. In both cases calls
 * that have not started are skipped.
 */
export async function settleTools(
  batch: ToolBatch,
  emit?: EmitEvents<ToolExecutionEvent>,
): Promise<BatchResult> {
  const execution = new Execution(batch, emit !== undefined)
  try {
    execution.startReady()
    for (;;) {
      const events = execution.takeEvents()
      if (events.length > 0) {
        const reading = emit?.(events)
        if (reading) await reading
      } else if (execution.isOver()) return execution.result()
      else await execution.change()
    }
  } finally {
    execution.close()
  }
}

/** The state of one batch. Its tools run independently of its reader, which may be slow. */
class Execution {
  readonly #batch: ToolBatch
  readonly #reports: boolean
  readonly #tools: ReadonlyMap<string, Tool>
  readonly #schedule: Schedule
  readonly #controller = new AbortController()
  readonly #unlink: () => void
  readonly #settled: (SettledCall | undefined)[]
  #events: ToolExecutionEvent[] = []
  #wake: () => void = () => {}
  #failure: { readonly error: unknown } | undefined
  /** The positions of the calls whose tools have started. */
  readonly #started = new Set<number>()
  #isCancelled = false
  /** The positions of the calls that have an outcome which is not journalled yet. */
  readonly #settling = new Set<number>()
  /** Calls that may still get an outcome after an abort. */
  readonly #holds = new Set<(reason: unknown) => string | undefined>()

  constructor(batch: ToolBatch, reports: boolean) {
    this.#reports = reports
    const { calls, tools, strategy, mode = 'parallel', succeeded = new Set() } = batch
    this.#batch = batch
    this.#tools = new Map(tools.map((tool) => [tool.name, tool]))
    const maxConcurrency = Math.max(1, strategy?.maxConcurrency ?? Infinity)
    this.#schedule = new Schedule({ calls, tools: this.#tools, mode, maxConcurrency, succeeded })
    this.#settled = calls.map(() => undefined)
    this.#unlink = linkAbort([batch.signal], this.#controller)
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
    const { signal, provider = 'skein' } = this.#batch
    if (signal.aborted && [...this.#holds].some((holds) => holds(signal.reason) !== undefined))
      return false
    // Comes first, because a tool that stops when it sees the abort fails with the reason of the abort.
    if (signal.aborted) {
      this.#cancel()
      throw cancelledError(signal, { provider, modality: 'llm' })
    }
    if (this.#failure) {
      // What another call is about to journal would otherwise come after the caller has decided what to run again.
      if (this.#settling.size > 0) return false
      throw this.#failure.error
    }
    return this.#schedule.isOver
  }

  #cancel(): void {
    const { onCancel, calls } = this.#batch
    if (!onCancel || this.#isCancelled) return
    this.#isCancelled = true
    onCancel(
      calls.map((call, position) => {
        const tool = this.#tools.get(call.toolName)
        const outcome = abortedOutcome(tool, this.#started.has(position))
        return this.#settled[position] ?? { call, outcome, durationMs: 0 }
      }),
    )
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

  /** Aborts the calls that still run and ignores their results. */
  close(): void {
    this.#unlink()
    if (!this.#schedule.isOver) this.#controller.abort()
  }

  #reuse(call: ToolCall, position: number): void {
    const recordedOutcome = this.#batch.settled?.get(call.toolCallId)
    if (!recordedOutcome) return
    const outcome =
      recordedOutcome.type === 'done' && recordedOutcome.modelResult === undefined
        ? doneOutcome(call, recordedOutcome.result)
        : recordedOutcome
    this.#settle(position, { call, outcome, durationMs: 0 })
  }

  /** Runs one call. Never rejects: an error outside the tool fails the batch. */
  async #run(position: number): Promise<void> {
    const call = this.#batch.calls[position]!
    let hold: ((reason: unknown) => string | undefined) | undefined
    try {
      const settled = await runToolCall(call, {
        settings: this.#batch,
        tool: this.#tools.get(call.toolName),
        refusal: this.#schedule.missingDependency(position),
        signal: this.#controller.signal,
        report: (report) => this.#report(call, position, report),
        hold: (settlesAfter) => {
          // Two calls of one tool may share a function, but each holds the batch by itself.
          hold = (reason) => settlesAfter(reason)
          this.#holds.add(hold)
        },
        settling: () => this.#settling.add(position),
      })
      this.#settle(position, settled)
      this.startReady()
    } catch (error) {
      this.#failure ??= { error }
      this.#controller.abort()
    }
    // Only now, when the outcome is in its place, may an abort end the batch.
    if (hold) this.#holds.delete(hold)
    this.#settling.delete(position)
    this.#wake()
  }

  #settle(position: number, settled: SettledCall): void {
    this.#settled[position] = settled
    this.#schedule.settle(position, settled.outcome)
  }

  #report(call: ToolCall, position: number, report: CallReport): void {
    if (report.type === 'start') this.#started.add(position)
    // A batch that has failed ends with its error, whatever its other calls still come to.
    if (!this.#reports || this.#failure) return
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
  const { duration, arguments: _arguments, ...ended } = toToolExecution(report.settled)
  return {
    type: 'tool_execution_end',
    index,
    delta: { ...ended, timestamp, durationMs: duration },
  }
}
