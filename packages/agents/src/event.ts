import type { StreamEvent, TokenUsage, ToolCall, ToolExecution } from '@skein/ai'
import type { AgentStopReason } from './agent.ts'
import type { PlanStep } from './plan-step.ts'
import type { SubagentExecutionTrace, ToolExecutionTrace } from './subagent-trace.ts'

/** Something that happened in a run (UAP §11.2): a step of the agent, or the model's own event. */
export type AgentStreamEvent =
  | { readonly source: 'uap'; readonly uap: UAPEvent; readonly upp?: never }
  | { readonly source: 'upp'; readonly upp: StreamEvent; readonly uap?: never }

/** What each event tells. The set may grow: pass over types that you do not know. */
export interface UAPEventData {
  readonly step_start: { readonly phase?: 'plan' | 'execute' }
  /** `stopReason` is set on the last step of a run. */
  readonly step_end: { readonly usage: TokenUsage; readonly stopReason?: AgentStopReason }
  readonly reasoning: { readonly reasoning: string }
  readonly action: { readonly toolCalls: readonly ToolCall[] }
  readonly observation: { readonly observations: readonly ToolExecution[] }
  readonly subagent_start: SubagentStart
  readonly subagent_event: SubagentInner
  readonly subagent_end: SubagentEnd
  readonly plan_created: { readonly plan: readonly PlanStep[] }
  readonly plan_step_start: { readonly planStep: PlanStep }
  readonly plan_step_end: { readonly planStep: PlanStep }
}

export type UAPEventType = keyof UAPEventData

/** Step and agent are those of the running agent, also for what its sub-agents do. */
export type UAPEvent = {
  readonly [Type in UAPEventType]: {
    readonly type: Type
    readonly step: number
    readonly agentId: string
    readonly data: UAPEventData[Type]
  }
}[UAPEventType]

interface SubagentIdentity {
  readonly subagentId: string
  readonly subagentType: string
  readonly parentToolCallId: string
}

export interface SubagentStart extends SubagentIdentity {
  readonly prompt: string
  /** Milliseconds since the epoch. */
  readonly timestamp: number
}

export interface SubagentInner extends SubagentIdentity {
  readonly innerEvent: AgentStreamEvent
}

export interface SubagentEnd extends SubagentIdentity {
  readonly success: boolean
  readonly result?: string
  readonly error?: string
  readonly timestamp: number
  readonly toolExecutions?: readonly (ToolExecution | ToolExecutionTrace)[]
  /** The sub-agent's own tokens. */
  readonly usage?: TokenUsage
  /** What its own sub-agents did; where absent, it is read from the forwarded events. */
  readonly children?: readonly SubagentExecutionTrace[]
}

/** What a tool that runs an agent tells through `context.onSubagentEvent` (UAP §8.7). */
export type SubagentEvent =
  | ({ readonly type: 'subagent_start' } & SubagentStart)
  | ({ readonly type: 'subagent_event' } & SubagentInner)
  | ({ readonly type: 'subagent_end' } & SubagentEnd)
