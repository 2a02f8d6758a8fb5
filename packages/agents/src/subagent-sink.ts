import { addUsage, zeroUsage, type TokenUsage, type ToolExecution } from '@skein/ai'
import type { SubagentEnd, SubagentEvent, SubagentStart, UAPEvent } from './event.ts'
import type { SubagentExecutionTrace, ToolExecutionTrace } from './subagent-trace.ts'

/**
 * Follows the sub-agents of one batch of calls by their events (UAP §8.7) and makes a trace of each
 * when it ends (§8.8). Sub-agents of sub-agents are read from the forwarded events.
 */
export class SubagentSink {
  readonly traces: SubagentExecutionTrace[] = []
  /** Tokens of all sub-agents that ended, at any depth. */
  usage: TokenUsage = zeroUsage
  readonly #open = new Map<string, { start: SubagentStart; inner: SubagentSink }>()
  readonly #forward: (event: SubagentEvent) => void
  #isClosed = false

  constructor(forward: (event: SubagentEvent) => void = () => {}) {
    this.#forward = forward
  }

  readonly push = (event: SubagentEvent): void => {
    if (this.#isClosed) return // of a tool that went on after its run was over
    this.#follow(event)
    this.#forward(event)
  }

  /** Ends what is still open, when the run is over before its tools are. */
  close(error: string, timestamp: number): void {
    for (const { start } of this.#open.values()) {
      const { subagentId, subagentType, parentToolCallId } = start
      const identity = { subagentId, subagentType, parentToolCallId }
      this.push({ type: 'subagent_end', ...identity, success: false, error, timestamp })
    }
    this.#isClosed = true
  }

  #follow(event: SubagentEvent): void {
    if (event.type === 'subagent_start')
      this.#open.set(event.subagentId, { start: event, inner: new SubagentSink() })
    else if (event.type === 'subagent_end') this.#end(event)
    else {
      const open = this.#open.get(event.subagentId)
      if (open) open.inner.#followInner(event.innerEvent.uap)
    }
  }

  #followInner(event: UAPEvent | undefined): void {
    if (event?.type === 'subagent_start') this.#follow({ type: event.type, ...event.data })
    else if (event?.type === 'subagent_event') this.#follow({ type: event.type, ...event.data })
    else if (event?.type === 'subagent_end') this.#follow({ type: event.type, ...event.data })
  }

  #end(event: SubagentEnd): void {
    const open = this.#open.get(event.subagentId)
    this.#open.delete(event.subagentId)
    const trace = toTrace(event, open?.start, event.children ?? open?.inner.traces ?? [])
    this.traces.push(trace)
    this.usage = addUsage(this.usage, usageOf(trace))
  }
}

function toTrace(
  end: SubagentEnd,
  start: SubagentStart | undefined,
  children: readonly SubagentExecutionTrace[],
): SubagentExecutionTrace {
  const { subagentId, subagentType, parentToolCallId, success, result, error, usage } = end
  const { toolExecutions } = end
  return {
    subagentId,
    subagentType,
    parentToolCallId,
    prompt: start?.prompt ?? '',
    startTime: start?.timestamp ?? end.timestamp,
    endTime: end.timestamp,
    success,
    ...(result !== undefined && { result }),
    ...(error !== undefined && { error }),
    ...(toolExecutions && { toolExecutions: toolExecutions.map(toToolTrace) }),
    ...(usage && { usage }),
    ...(children.length > 0 && { children }),
  }
}

function toToolTrace(execution: ToolExecution | ToolExecutionTrace): ToolExecutionTrace {
  const { toolName, toolCallId, arguments: args, result, isError, duration } = execution
  return {
    toolName,
    ...(toolCallId !== undefined && { toolCallId }),
    arguments: args,
    result: typeof result === 'string' ? result : stringify(result),
    ...(isError !== undefined && { isError }),
    ...(duration !== undefined && { duration }),
  }
}

/** JSON, which says everything that a tool's result can hold but for values it has no word for. */
function stringify(value: unknown): string {
  try {
    return JSON.stringify(value) ?? String(value)
  } catch {
    return String(value)
  }
}

/** The tokens of a sub-agent and of all below it. */
function usageOf({ usage = zeroUsage, children = [] }: SubagentExecutionTrace): TokenUsage {
  return children.map(usageOf).reduce(addUsage, usage)
}
