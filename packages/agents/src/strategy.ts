import type { TokenUsage, ToolCall, ToolExecution, Turn } from '@skein/ai'
import type { GenerateResult } from './agent.ts'
import type { AgentState } from './state.ts'

/** Hooks at the steps of a run (UAP §10). Each is awaited; one that throws fails the run. */
export interface AgentStrategy {
  /** Asked after every step. */
  readonly stopCondition?: (state: AgentState, totals: RunTotals) => boolean | Promise<boolean>
  readonly onStepStart?: (step: number, state: AgentState) => void | Promise<void>
  readonly onReason?: (step: number, reasoning: string) => void | Promise<void>
  /** After the inference, before any tool starts. */
  readonly onAct?: (step: number, actions: readonly ToolCall[]) => void | Promise<void>
  /** After all tools of the step. */
  readonly onObserve?: (
    step: number,
    observations: readonly ToolExecution[],
  ) => void | Promise<void>
  /** A state it returns is the one to go on with. */
  readonly onStepEnd?: (
    step: number,
    result: { readonly turn: Turn; readonly state: AgentState },
  ) => void | AgentState | Promise<void | AgentState>
  readonly onComplete?: (result: GenerateResult) => void | Promise<void>
  /** A result it returns is the run's. */
  readonly onError?: (
    error: Error,
    state: AgentState,
  ) => void | GenerateResult | Promise<void | GenerateResult>
}

/** What a run has done and spent so far. */
export interface RunTotals {
  /** The run as a turn, so far. */
  readonly turn: Turn
  /** With the tokens of all sub-agents. */
  readonly usage: TokenUsage
  /** Steps of this call. */
  readonly steps: number
}
