import { type TokenUsage, type ToolExecution } from '@skein/ai'
import { addUsage, zeroUsage } from '@skein/ai/engine'
import {
  type AgentStreamEvent,
  type SubagentEnd,
  type SubagentEvent,
  type SubagentInner,
  type SubagentStart,
  type UAPEvent,
  uapEvent,
} from '../contract/event.ts'
import { usageOfTrace } from '../state/run-account.ts'
import type { SubagentExecutionTrace, ToolExecutionTrace } from '../state/state-types.ts'

/** The events of a run in batches, as they happen; the generator returns the result of the run. */
export type Batches<R> = AsyncGenerator<readonly AgentStreamEvent[], R>

/** Runs a generator to its end and drops its events. */
export async function drain<R>(batches: AsyncGenerator<unknown, R>): Promise<R> {
  for (;;) {
    const step = await batches.next()
    if (step.done) return step.value
  }
}

// `setTimeout` is read at import, so that the fake timers of a test do not block the run.
const setTimer = globalThis.setTimeout

/** Waits until everything that is ready to run has run. */
export function nextMacrotask(): Promise<void> {
  return new Promise((resolve) => setTimer(resolve, 0))
}

/** The number of unread events at which sub-agents wait for the reader. */
const MAX_BEHIND = 32

/**
 * The events between a run and its reader. A run whose events have no reader has no `LiveEvents`: everything it
 * does is the same, but it reports nothing.
 */
export class LiveEvents {
  /**
   * Set before the last events of a run. Only hooks for the end of the run are left then, so a reader that leaves
   * the stream does not abort the run.
   */
  isFinal = false
  #events: AgentStreamEvent[] = []
  #wake: () => void = () => {}
  #room: Promise<void> | undefined
  #freed: () => void = () => {}
  #isClosed = false

  /**
   * Adds events of the run itself. The run awaits the returned promise, which resolves when the reader asks
   * for more, so that a run waits while its reader does not read.
   */
  emit(events: readonly AgentStreamEvent[]): void | Promise<void> {
    for (const event of events) this.#events.push(event)
    return this.#wait()
  }

  /**
   * Adds an event from inside a running tool. If the reader is behind by `MAX_BEHIND` events, returns a
   * promise as `emit` does; a sub-agent awaits it.
   */
  push(event: AgentStreamEvent): void | Promise<void> {
    this.#events.push(event)
    if (this.#events.length >= MAX_BEHIND) return this.#wait()
    this.#wake()
  }

  #wait(): void | Promise<void> {
    this.#wake()
    if (this.#isClosed) return
    return (this.#room ??= new Promise((resolve) => (this.#freed = resolve)))
  }

  /**
   * Starts a run with the first `next`, yields its events and returns its result. If the reader leaves early,
   * `onLeave` must abort the run, whose events then no longer wait for a reader.
   */
  async *read<R>(run: () => Promise<R>, onLeave?: () => void): Batches<R> {
    let outcome: { readonly result: R } | { readonly error: unknown } | undefined
    const end = (how: typeof outcome): void => {
      outcome = how
      this.#wake()
    }
    const completion = run().then(
      (result) => end({ result }),
      (error: unknown) => end({ error }),
    )
    try {
      for (;;) {
        const events = this.#events
        if (events.length > 0) {
          this.#events = []
          yield events
          this.#free()
        } else if (!outcome) await new Promise<void>((resolve) => (this.#wake = resolve))
        else if ('error' in outcome) throw outcome.error
        else return outcome.result
      }
    } finally {
      this.#isClosed = true
      this.#free()
      if (!outcome) onLeave?.()
      await completion
    }
  }

  #free(): void {
    this.#freed()
    this.#room = undefined
  }
}

/**
 * Returns the object that collects the events of sub-agents. If the run has a reader, each event
 * is also added to `live`, as an event of the calling agent.
 */
export function followSubagents(
  live: LiveEvents | undefined,
  origin: () => { readonly step: number; readonly agentId: string },
): SubagentSink {
  return new SubagentSink(
    live && (({ type, ...data }) => live.push(uapEvent(origin(), type, data))),
  )
}

/** A sub-agent that has started and not ended, with the sink of its own sub-agents. */
interface OpenSubagent {
  readonly identity: Omit<SubagentStart, 'prompt' | 'timestamp'>
  readonly prompt: string
  readonly timestamp: number
  readonly inner: SubagentSink
}

/**
 * Follows the sub-agents of one batch of calls by their events (UAP §8.7) and makes a trace of each when it
 * ends (UAP §8.8). Nested sub-agents are read from the forwarded events.
 */
export class SubagentSink {
  readonly traces: SubagentExecutionTrace[] = []
  /** Tokens of all sub-agents that have ended, at any depth. */
  usage: TokenUsage = zeroUsage
  /** Steps of sub-agents that have ended and share their caller's budget. */
  steps = 0
  readonly #open = new Map<string, OpenSubagent>()
  readonly #forward: ((event: SubagentEvent) => void | Promise<void>) | undefined
  /** Of a nested sink: the last event that was read, whose step and agent are those of the ends it adds. */
  #last: UAPEvent | undefined
  #isClosed = false

  constructor(forward?: (event: SubagentEvent) => void | Promise<void>) {
    this.#forward = forward
  }

  readonly push = (event: SubagentEvent): void | Promise<void> => {
    if (this.#isClosed) return // the event comes from a tool that continued after its run had ended
    this.#follow(event)
    return this.#forward?.(event)
  }

  /** Whether a sub-agent has not ended yet. */
  get isOpen(): boolean {
    return this.#open.size > 0
  }

  /** Returns the traces of the sub-agents that one call has run to their end. */
  tracesOf(toolCallId: string): readonly SubagentExecutionTrace[] {
    return this.traces.filter(({ parentToolCallId }) => parentToolCallId === toolCallId)
  }

  /** Reports the end of sub-agents that are still running when the agent's run ends before its tools do. */
  close(timestamp: number, error = 'The call ended.'): void {
    for (const { identity } of this.#open.values())
      void this.push({ ...identity, type: 'subagent_end', success: false, error, timestamp })
    this.#isClosed = true
  }

  #follow(event: SubagentEvent): void {
    if (event.type === 'subagent_start') {
      const { type: _, prompt, timestamp, ...identity } = event
      const inner: SubagentSink = new SubagentSink(({ type, ...data }) => {
        const innerEvent = uapEvent(inner.#last!, type, data as never)
        return this.#forward?.({ ...identity, type: 'subagent_event', innerEvent })
      })
      this.#open.set(event.subagentId, { identity, prompt, timestamp, inner })
    } else if (event.type === 'subagent_end') this.#end(event)
    else this.#followInner(event)
  }

  #followInner({ subagentId, innerEvent: { uap } }: SubagentInner): void {
    const inner = this.#open.get(subagentId)?.inner
    if (!inner || !uap?.type.startsWith('subagent_')) return
    inner.#last = uap
    // The cast is safe: an event has the data of its type, which TypeScript cannot see in the union.
    inner.#follow({ type: uap.type, ...uap.data } as SubagentEvent)
  }

  #end(end: SubagentEnd): void {
    const { subagentId, subagentType, parentToolCallId, success, result, error, usage } = end
    const open = this.#open.get(subagentId)
    this.#open.delete(subagentId)
    if (end.waits) return // the sub-agent continues when it is resumed, and has one trace in the end
    open?.inner.close(end.timestamp, error)
    const children = end.children ?? open?.inner.traces ?? []
    const trace: SubagentExecutionTrace = {
      subagentId,
      subagentType,
      parentToolCallId,
      prompt: open?.prompt ?? '',
      startTime: open?.timestamp ?? end.timestamp,
      endTime: end.timestamp,
      success,
      result: result && textOfValue(result),
      error: error && textOfValue(error),
      toolExecutions: end.toolExecutions?.map(toToolTrace),
      usage: usage && addUsage(usage, zeroUsage), // with all counts
      children: children.length > 0 ? children : undefined,
    }
    this.traces.push(trace)
    this.usage = addUsage(this.usage, usageOfTrace(trace))
  }
}

function toToolTrace(execution: ToolExecution | ToolExecutionTrace): ToolExecutionTrace {
  const { toolName, toolCallId, arguments: args, result, isError, duration } = execution
  return { toolName, toolCallId, arguments: args, result: textOfValue(result), isError, duration }
}

/** Returns a text as it is, any other value as JSON, or converted with `String` if JSON cannot express it. */
function textOfValue(value: unknown): string {
  if (typeof value === 'string') return value
  try {
    return JSON.stringify(value) ?? String(value)
  } catch {
    return String(value)
  }
}
