import type { Message } from '@skein/ai'
import type { Agent, GenerateResult } from './agent.ts'
import type { AgentState } from './state.ts'

/** Wraps whole runs (UAP §9): `before` in order, `after` and `onError` in reverse. */
export interface Middleware {
  readonly name: string
  /** May return another context: another input, another state. */
  before?(context: MiddlewareContext): Promise<MiddlewareContext | void> | MiddlewareContext | void
  after?(
    context: MiddlewareContext,
    result: GenerateResult,
  ): Promise<GenerateResult | void> | GenerateResult | void
  /** A result it returns is the run's, and goes through the `after` of the outer middleware. */
  onError?(
    context: MiddlewareContext,
    error: Error,
  ): Promise<GenerateResult | void> | GenerateResult | void
}

export interface MiddlewareContext {
  readonly agent: Agent
  readonly input: Message
  readonly state: AgentState
  /** Of this run alone. Works as a Map and by property: `metadata.startTime = 1`. */
  readonly metadata: MiddlewareMetadata
}

// `any` would be the honest type of `metadata.startTime`; unknown makes readers check.
export type MiddlewareMetadata = Map<string, unknown> & { [name: string]: unknown }
