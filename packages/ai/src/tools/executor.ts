import { linkAbort } from '@skein/base'
import type { ToolExecutionEndEvent, ToolExecutionStartEvent } from '../contract/event.ts'
import { isAssistantMessage, isToolResultMessage, type Message } from '../contract/message.ts'
import { cancelledError } from '../contract/error.ts'
import type { Tool, ToolCall, ToolOutcome } from '../contract/tool.ts'
import type { Warning } from '../contract/turn.ts'
import {
  abortedOutcome,
  type CallReport,
  type CallSettings,
  doneOutcome,
  runToolCall,
  type SettledCall,
  toToolExecution,
} from './call.ts'

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
 * Runs the calls of one message and reports each start and end as it happens. Throws `CANCELLED` as soon as the signal
 * aborts, even if a tool ignores the signal, unless a write that runs still has its grace (`CallPorts.settlesAfter`).
 * Rethrows errors of a hook, a gate or a journal, after the calls that have an outcome are journalled. In both cases calls
 * that have not started are skipped.
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

/** Runs the calls of one message as `executeTools` does, but reports nothing. */
export async function settleTools(batch: ToolBatch): Promise<BatchResult> {
  const execution = new Execution(batch, false)
  try {
    execution.startReady()
    while (!execution.isOver()) await execution.change()
    return execution.result()
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

  constructor(batch: ToolBatch, reports = true) {
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
    try {
      const settled = await runToolCall(call, {
        settings: this.#batch,
        tool: this.#tools.get(call.toolName),
        refusal: this.#schedule.missingDependency(position),
        signal: this.#controller.signal,
        report: (report) => this.#report(call, position, report),
        hold: (settlesAfter) => {
          // Two calls of one tool may share a function, but each holds the batch by itself.
          const held = (reason: unknown): string | undefined => settlesAfter(reason)
          this.#holds.add(held)
          return () => this.#holds.delete(held) // the end of `#run` wakes the reader
        },
        settling: () => this.#settling.add(position),
      })
      this.#settle(position, settled)
      this.startReady()
    } catch (error) {
      this.#failure ??= { error }
      this.#controller.abort()
    }
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

/** Returns the names of the tools that a call in this history ran successfully. */
export function succeededTools(messages: readonly Message[]): Set<string> {
  const names = new Map<string, string>()
  const succeeded = new Set<string>()
  for (const message of messages) {
    if (isAssistantMessage(message))
      for (const call of message.toolCalls ?? []) names.set(call.toolCallId, call.toolName)
    else if (isToolResultMessage(message))
      for (const { toolCallId, toolName, isError } of message.results) {
        const name = toolName ?? names.get(toolCallId)
        if (!isError && name !== undefined) succeeded.add(name)
      }
  }
  return succeeded
}

/** The settings of the schedule of one batch. */
interface ScheduleInput {
  readonly calls: readonly ToolCall[]
  readonly tools: ReadonlyMap<string, Tool>
  readonly mode: 'parallel' | 'sequential'
  readonly maxConcurrency: number
  /** Tools that succeeded earlier in the conversation. */
  readonly succeeded: ReadonlySet<string>
}

type Status = 'pending' | 'running' | 'settled' | 'blocked'

/**
 * Decides which calls may start now (UAP §8.5, §8.6). Calls are identified by their position. Sequential
 * calls run first, one at a time in call order; all others may overlap; `dependsOn` and `after` override both
 * rules.
 */
class Schedule {
  readonly warnings: Warning[] = []
  readonly #input: ScheduleInput
  readonly #status: Status[]
  readonly #outcomes: (ToolOutcome | undefined)[]
  /** For each call, the positions of the calls that must settle before it. */
  readonly #waitsFor: readonly ReadonlySet<number>[]
  readonly #isOrdered: boolean
  #hasCycle = false
  /** The number of calls that have not started, and of those that are neither settled nor blocked. */
  #pendingCount: number
  #openCount: number

  constructor(input: ScheduleInput) {
    this.#input = input
    this.#status = input.calls.map(() => 'pending')
    this.#outcomes = input.calls.map(() => undefined)
    this.#waitsFor = this.#edges()
    this.#isOrdered = input.calls.some(
      (_, position) => this.#isExclusive(position) || this.#waitsFor[position]!.size > 0,
    )
    this.#pendingCount = input.calls.length
    this.#openCount = input.calls.length
  }

  /** Returns the positions to start now, in call order. Each position is returned once. */
  next(): number[] {
    if (this.#pendingCount === 0) return []
    const all = this.#pickAll()
    if (all) return all
    const start: number[] = []
    for (;;) {
      const position = this.#pick()
      if (position === undefined) return start
      this.#begin(position)
      start.push(position)
    }
  }

  /** Starts all calls at once if none has to wait, the common case; this avoids quadratic work for many calls. */
  #pickAll(): number[] | undefined {
    const { calls, maxConcurrency } = this.#input
    const isFree =
      this.#pendingCount === calls.length && calls.length <= maxConcurrency && !this.#isOrdered
    if (!isFree) return undefined
    for (let position = 0; position < calls.length; position++) this.#begin(position)
    return calls.map((_, position) => position)
  }

  #begin(position: number): void {
    this.#status[position] = 'running'
    this.#pendingCount--
  }

  settle(position: number, outcome: ToolOutcome): void {
    this.#outcomes[position] = outcome
    if (this.#status[position] === 'pending') this.#pendingCount--
    if (this.#status[position] === 'pending' || this.#status[position] === 'running')
      this.#openCount--
    this.#status[position] = 'settled'
  }

  /** True when no call runs and none can start; the remaining calls wait for a deferred call. */
  get isOver(): boolean {
    return this.#openCount === 0
  }

  /** Returns why this call must not run, if a tool it depends on has not succeeded (UAP §8.5). */
  missingDependency(position: number): string | undefined {
    for (const name of this.#dependencies(position)) {
      const inBatch = this.#callsTo(name, position)
      // In a dependency cycle the other call may have no outcome yet; that call is then treated as successful.
      if (inBatch.some((other) => (this.#outcomes[other]?.type ?? 'done') !== 'done'))
        return `It depends on "${name}", whose call in the same message did not succeed.`
      if (inBatch.length === 0 && !this.#input.succeeded.has(name))
        return `It depends on "${name}", which has not run successfully yet.`
    }
    return undefined
  }

  #pick(): number | undefined {
    this.#blockBehindDeferred()
    const running = this.#count('running')
    if (running >= this.#input.maxConcurrency) return undefined
    const pending = this.#positions('pending')
    if (pending.length === 0) return undefined
    if (this.#hasCycle) return running === 0 ? pending[0] : undefined
    const exclusive = pending.filter((position) => this.#isExclusive(position))
    if (exclusive.length > 0 || this.#runsExclusive()) return this.#pickOrdered(exclusive, running)
    return this.#firstReady(pending) ?? this.#breakCycle(running, pending)
  }

  /**
   * Picks the next call while exclusive calls (those that must run alone) are left: only exclusive calls, and
   * the calls they depend on, may start.
   */
  #pickOrdered(exclusive: readonly number[], running: number): number | undefined {
    if (this.#runsExclusive()) return undefined
    const ready = this.#firstReady(exclusive)
    if (ready !== undefined) return running === 0 ? ready : undefined
    const ancestors = this.#ancestors(exclusive).filter((position) => !this.#isExclusive(position))
    return this.#firstReady(ancestors) ?? this.#breakCycle(running, this.#positions('pending'))
  }

  #firstReady(positions: readonly number[]): number | undefined {
    return positions.find(
      (position) => this.#status[position] === 'pending' && this.#isReady(position),
    )
  }

  /**
   * Returns the first pending call when the pending calls wait for each other and none is running. From then
   * on they run one by one in call order.
   */
  #breakCycle(running: number, pending: readonly number[]): number | undefined {
    if (running > 0) return undefined
    this.#hasCycle = true
    const names = pending.map((position) => this.#input.calls[position]!.toolName)
    this.warnings.push({
      code: 'dependency_cycle',
      message: `The calls to ${names.join(', ')} wait for each other; they ran one by one in call order.`,
    })
    return pending[0]
  }

  /** Marks calls that wait for a deferred call as blocked; they stay open, without an outcome. */
  #blockBehindDeferred(): void {
    for (let hasChange = true; hasChange;) {
      hasChange = false
      for (const position of this.#positions('pending')) {
        if (![...this.#waitsFor[position]!].some((other) => this.#isOpen(other))) continue
        this.#status[position] = 'blocked'
        this.#pendingCount--
        this.#openCount--
        hasChange = true
      }
    }
  }

  #isOpen(position: number): boolean {
    return this.#status[position] === 'blocked' || this.#outcomes[position]?.type === 'deferred'
  }

  #isReady(position: number): boolean {
    for (const other of this.#waitsFor[position]!)
      if (this.#status[other] !== 'settled') return false
    return true
  }

  #isExclusive(position: number): boolean {
    if (this.#input.mode === 'sequential') return true
    return this.#tool(position)?.sequential === true
  }

  #runsExclusive(): boolean {
    return this.#positions('running').some((position) => this.#isExclusive(position))
  }

  #ancestors(positions: readonly number[]): number[] {
    const visitedCalls = new Set<number>()
    const open = [...positions]
    for (let position = open.pop(); position !== undefined; position = open.pop())
      for (const other of this.#waitsFor[position]!)
        if (!visitedCalls.has(other)) {
          visitedCalls.add(other)
          open.push(other)
        }
    return [...visitedCalls].sort((a, b) => a - b)
  }

  #edges(): ReadonlySet<number>[] {
    const byId = new Map(this.#input.calls.map((call, position) => [call.toolCallId, position]))
    return this.#input.calls.map((call, position) => {
      const edges = new Set<number>()
      for (const name of this.#dependencies(position, this.warnings))
        for (const other of this.#callsTo(name, position)) edges.add(other)
      // An unknown id in `after` becomes an edge to the call itself, which is deleted below.
      for (const id of call.after ?? []) edges.add(byId.get(id) ?? position)
      edges.delete(position)
      return edges
    })
  }

  /** Returns the names in `dependsOn` that are known tools; unknown names are reported once and ignored. */
  #dependencies(position: number, warnings?: Warning[]): readonly string[] {
    const tool = this.#tool(position)
    return (tool?.dependsOn ?? []).filter((name) => {
      if (this.#input.tools.has(name)) return true
      warnings?.push({
        code: 'unknown_dependency',
        message: `The tool "${tool?.name}" depends on "${name}", which is not one of the tools.`,
      })
      return false
    })
  }

  #callsTo(name: string, except: number): number[] {
    return this.#input.calls.flatMap((call, position) =>
      call.toolName === name && position !== except ? [position] : [],
    )
  }

  #tool(position: number): Tool | undefined {
    return this.#input.tools.get(this.#input.calls[position]!.toolName)
  }

  #positions(status: Status): number[] {
    return this.#status.flatMap((one, position) => (one === status ? [position] : []))
  }

  #count(status: Status): number {
    return this.#positions(status).length
  }
}
