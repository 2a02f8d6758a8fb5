import type {
  DeferRequest,
  ModelReference,
  ProviderConfig,
  StreamEvent,
  TokenUsage,
  Tool,
  ToolCall,
  ToolContext,
  ToolExecution,
  TypesOf,
} from '@skein/ai'
import type {
  Answer,
  Answers,
  PlanStep,
  SubagentExecutionTrace,
  ToolExecutionTrace,
} from '../state/state-types.ts'

/** The result types of an agent whose tools are unknown to the compiler. */
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
  /** Another run has saved the same session during this run; the states of both are versions of the session now. */
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
 * An event of the agent itself (UAP). `step` and `agentId` name the agent whose run is streamed, even if the
 * event only reports what a sub-agent of it did (`subagent_event`).
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
  /** The model requested no more calls, and its answer is whole. */
  Complete: 'complete',
  /** The answer was cut off by the limit of its length. */
  MaxTokens: 'max_tokens',
  /** The answer was cut off because the context of the model is full. */
  ContextWindow: 'context_window',
  /** The model refused. */
  Refusal: 'refusal',
  /** The vendor's filter stopped the answer. */
  ContentFilter: 'content_filter',
  /** The vendor could not read what its model wrote, e.g. a malformed call, or the answer ended empty for no known reason. */
  Other: 'other',
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

/** Identifies a running agent and, in `parentContext`, the agents that called it (UAP §3.4). */
export interface AgentLineage {
  readonly agentId: string
  readonly stateId: string
  readonly sessionId?: string
  readonly parentContext?: AgentLineage
}

/** The second argument of a tool's `run` under an agent (UAP §8.4, UAP §8.7). */
export interface AgentContext extends ToolContext, AgentLineage {
  readonly parentModel: ModelReference
  readonly parentConfig?: ProviderConfig
  readonly step: number
  /** Whether the run is streamed, so that its events are read while they happen. */
  readonly streaming: boolean
  /**
   * Stays the same however often the call is tried, also after a crash. Made of the session id (or the id of
   * the run's first state) and the call id, and inside a sub-agent also of the calls that lead to it.
   */
  readonly idempotencyKey: string
  /** Reports an event of a sub-agent. If awaited, it waits until a slow reader of the stream has caught up. */
  readonly onSubagentEvent: (event: SubagentEvent) => void
  /** The request with which this call was deferred in an earlier run, if any. */
  readonly deferred?: DeferRequest
  /** The answer to `deferred`. */
  readonly answer?: Answer
  /** Answers for the interrupts of a sub-agent inside this call, by interrupt id. */
  readonly answers?: Answers
  /** Returns whether the caller's stop condition would end its run after this many additional tokens. */
  readonly shouldStop: (spent: TokenUsage) => Promise<boolean>
}

/** Makes an event of one step of an agent. */
export function uapEvent<Type extends UAPEventType>(
  { step, agentId }: { readonly step: number; readonly agentId: string },
  type: Type,
  data: UAPEventData[Type],
): AgentStreamEvent {
  // Cast, because TypeScript cannot match a type with its data across a union.
  return { source: 'uap', uap: { type, step, agentId, data } as never }
}
