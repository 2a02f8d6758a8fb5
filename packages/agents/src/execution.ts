import type { Clock, IdSource } from '@skein/base'
import type { LLMInstance, Message, Tool, ToolEffect, Turn } from '@skein/ai'
import type { Agent, AgentStreamResult, GenerateResult } from './agent.ts'
import type { Answers } from './interrupt.ts'
import type { AgentState } from './state.ts'
import type { AgentStrategy, RunTotals } from './strategy.ts'
import type { AgentLineage } from './tool-context.ts'

/** How an agent works (UAP §5.1). Implement both methods, or wrap a built-in one and pass its context on. */
export interface ExecutionStrategy {
  readonly name: string
  execute(context: ExecutionContext): Promise<ExecutionResult>
  stream(context: ExecutionContext): AgentStreamResult
}

export type ExecutionResult = GenerateResult

/** What a strategy works with. The first seven are the protocol's; the others are optional to use. */
export interface ExecutionContext extends Partial<AgentLineage> {
  readonly agent: Agent
  readonly llm: LLMInstance
  readonly input: Message
  readonly state: AgentState
  readonly tools: readonly Tool[]
  readonly strategy: AgentStrategy
  readonly signal?: AbortSignal
  /** Set when a suspended or restored run goes on: there is no new input then. */
  readonly resume?: { readonly answers: Answers }
  /** Saves a state; the built-in strategies call it after each `step_end`. */
  readonly checkpoint?: (state: AgentState) => void | Promise<void>
  /** Messages to add before the next inference; empties itself. */
  readonly takeSteering?: () => readonly Message[]
  readonly commit?: (effect: StepEffect) => void | Promise<void>
  /** A second stop condition, e.g. the caller's budget. */
  readonly shouldStop?: (totals: RunTotals) => boolean | Promise<boolean>
  readonly clock?: Clock
  readonly ids?: IdSource
}

/** What a journal is told of: before and after each inference and each call. */
export type StepEffect =
  | { readonly type: 'inference_start'; readonly step: number; readonly state: AgentState }
  | { readonly type: 'inference_end'; readonly step: number; readonly turn: Turn }
  | (ToolEffect & { readonly step: number })
