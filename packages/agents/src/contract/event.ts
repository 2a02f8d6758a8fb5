import type { StreamEvent, TokenUsage, Tool, ToolCall, ToolExecution, TypesOf } from '@skein/ai'
import type { PlanStep, SubagentExecutionTrace, ToolExecutionTrace } from '../state/state-types.ts'

/** The types of the results of any tools: what is known without the tools of an agent. */
export type AnyCalls = TypesOf<Tool>

/**
 * One event of a run (UAP §11.2): an event of the agent (`uap`) or of its model (`upp`). `Calls` are the types of
 * the results of the agent's tools.
 */
export type AgentStreamEvent<Calls extends AnyCalls = AnyCalls> =
  | { readonly source: 'uap'; readonly uap: UAPEvent<Calls>; readonly upp?: never }
  | { readonly source: 'upp'; readonly upp: StreamEvent<Calls>; readonly uap?: never }

/** The data of each event type. More types may be added: ignore unknown ones. */
export interface UAPEventData<Calls extends AnyCalls = AnyCalls> {
  readonly step_start: { readonly phase?: 'plan' | 'execute' }
  /** `stopReason` is set on the last step of a run. */
  readonly step_end: { readonly usage: TokenUsage; readonly stopReason?: AgentStopReason }
  readonly reasoning: { readonly reasoning: string }
  readonly action: { readonly toolCalls: readonly ToolCall[] }
  readonly observation: { readonly observations: readonly Calls['execution'][] }
  /** A value that a running tool has yielded. */
  readonly tool_progress: {
    readonly toolCallId: string
    readonly toolName: string
    readonly output: unknown
  }
  readonly subagent_start: SubagentStart
  readonly subagent_event: SubagentInner
  readonly subagent_end: SubagentEnd
  /** Somebody else has saved the session during this run; both are versions of it now. */
  readonly checkpoint_conflict: {
    readonly sessionId: string
    readonly expected: string | null
    readonly found: string | null
  }
  readonly plan_created: { readonly plan: readonly PlanStep[] }
  readonly plan_step_start: { readonly planStep: PlanStep }
  readonly plan_step_end: { readonly planStep: PlanStep }
}

/** The names of the events of UAP. */
export type UAPEventType = keyof UAPEventData

/**
 * An event of UAP. `step` and `agentId` are those of the running agent, also for events of its sub-agents.
 */
export type UAPEvent<Calls extends AnyCalls = AnyCalls> = {
  readonly [Type in UAPEventType]: {
    readonly type: Type
    readonly step: number
    readonly agentId: string
    readonly data: UAPEventData<Calls>[Type]
  }
}[UAPEventType]

/** Why a run ended. */
export const AgentStopReason = {
  /** The model requested no more calls. */
  Complete: 'complete',
  MaxIterations: 'max_iterations',
  MaxSteps: 'max_steps',
  StopCondition: 'stop_condition',
  Interrupted: 'interrupted',
} as const
/** One of the reasons in `AgentStopReason`. */
export type AgentStopReason = (typeof AgentStopReason)[keyof typeof AgentStopReason]

interface SubagentIdentity {
  readonly subagentId: string
  readonly subagentType: string
  readonly parentToolCallId: string
}

/** A sub-agent began its run. */
export interface SubagentStart extends SubagentIdentity {
  readonly prompt: string
  /** Milliseconds since the epoch. */
  readonly timestamp: number
}

/** An event in the run of a sub-agent. */
export interface SubagentInner extends SubagentIdentity {
  readonly innerEvent: AgentStreamEvent
}

/** A sub-agent's run is over. */
export interface SubagentEnd extends SubagentIdentity {
  readonly success: boolean
  /** True if the sub-agent only waits for an answer. It has no trace yet; a resumed run continues it. */
  readonly waits?: boolean
  readonly result?: string
  readonly error?: string
  readonly timestamp: number
  readonly toolExecutions?: readonly (ToolExecution | ToolExecutionTrace)[]
  /** The sub-agent's own tokens, without those of its sub-agents. */
  readonly usage?: TokenUsage
  /**
   * Traces of the sub-agents that this sub-agent called; if absent, they are built from the forwarded events.
   */
  readonly children?: readonly SubagentExecutionTrace[]
}

/** An event that a tool which runs an agent reports through `context.onSubagentEvent` (UAP §8.7). */
export type SubagentEvent =
  | ({ readonly type: 'subagent_start' } & SubagentStart)
  | ({ readonly type: 'subagent_event' } & SubagentInner)
  | ({ readonly type: 'subagent_end' } & SubagentEnd)

/** Makes an event of one step of an agent. */
export function uapEvent<Type extends UAPEventType>(
  { step, agentId }: { readonly step: number; readonly agentId: string },
  type: Type,
  data: UAPEventData[Type],
): AgentStreamEvent {
  // Cast, because TypeScript cannot match a type with its data across a union.
  return { source: 'uap', uap: { type, step, agentId, data } as never }
}
