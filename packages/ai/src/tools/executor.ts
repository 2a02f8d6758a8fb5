import { linkAbort } from '../contract/abort-race.ts'
import type { ToolExecutionEndEvent, ToolExecutionStartEvent } from '../contract/event.ts'
import { isAssistantMessage, isToolResultMessage, type Message } from '../contract/message.ts'
import { cancelledError } from '../contract/error.ts'
import type { Tool, ToolCall, ToolOutcome } from '../contract/tool.ts'
import type { Warning } from '../contract/turn.ts'
import {
  doneOutcome,
  runToolCall,
  toToolExecution,
  type CallReport,
  type CallSettings,
  type SettledCall,
} from './call.ts'
import { Schedule } from './schedule.ts'

/** One batch of calls from one assistant message; the only place where tools run. */
export interface ToolBatch extends CallSettings {
  readonly calls: readonly ToolCall[]
  readonly signal: AbortSignal
  /** Default `parallel`; `sequential` runs calls one by one in call order. */
  readonly mode?: 'parallel' | 'sequential'
  /** Names of tools that succeeded earlier in this conversation: they satisfy `dependsOn`. */
  readonly succeeded?: ReadonlySet<string>
  /** Outcomes known already, by call id: those calls are not run again (resume). */
  readonly settled?: ReadonlyMap<string, ToolOutcome>
  /** Block index of each call in its message, for the events; default: position in `calls`. */
  readonly indexes?: ReadonlyMap<string, number>
}

/** What became of a batch. */
export interface BatchResult {
  /** In call order. Calls that wait for a deferred one are not in it. */
  readonly settled: readonly SettledCall[]
  readonly warnings: readonly Warning[]
}

/** The events that running tools give. */
export type ToolExecutionEvent = ToolExecutionStartEvent | ToolExecutionEndEvent

/**
 * Runs the calls of one message and reports each start and end while it happens. Throws
 * `CANCELLED` as soon as the signal aborts, also when a tool does not listen to it, and whatever a
 * hook, a gate or a journal throws; calls that have not started are then skipped.
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

  /** Aborts the calls that still run and ignores their results. */
  close(): void {
    this.#unlink()
    if (!this.#schedule.isOver) this.#controller.abort()
  }

  #reuse(call: ToolCall, position: number): void {
    const known = this.#batch.settled?.get(call.toolCallId)
    if (!known) return
    const outcome = known.type === 'done' ? doneOutcome(call, known.result) : known
    this.#settle(position, { call, outcome, durationMs: 0 })
  }

  /** Never rejects: what goes wrong outside the tool fails the batch. */
  async #run(position: number): Promise<void> {
    const call = this.#batch.calls[position]!
    try {
      const settled = await runToolCall(call, {
        settings: this.#batch,
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

/** Names of the tools that some call in this history ran successfully. */
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
