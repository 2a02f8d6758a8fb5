import type { Tool, ToolContext } from '@skein/ai'
import type { JsonObject, JsonSchema, JsonValue } from '@skein/base'
import type { Governance, Risk } from '@skein/governance'
import type { Ref } from './agent-definition.ts'
import type { VariableDefinition } from './prompt-definition.ts'
import type { ThreadState } from '../contract/thread-state.ts'

/** The risk of a tool, how to undo a call, and how to find out whether it ran; see `@skein/governance`. */
export interface ToolGovernance<Args = never, Result = unknown> extends Governance<Args, Result> {
  readonly risk: Risk
}

/**
 * A tool of any origin: made with `defineTool`, with `tool()` of `@skein/ai`, with `governed()` of
 * `@skein/governance`, by an MCP server, or any object with the fields of a `Tool`. Without a `risk` it is
 * treated as `write_low_risk`, or as `write_high_risk` if it comes from an MCP server. A tool can access the state of its thread as `context.state`.
 */
export type AnyTool = ToolDefinition | Tool

/** A tool as the runtime uses it; see `defineTool`. */
export interface ToolDefinition {
  readonly kind: 'tool'
  readonly name: string
  readonly description: string
  readonly parameters: JsonSchema
  /** Runs the tool. Absent for a tool that runs at the client: its calls wait for a result. */
  readonly run?: (params: JsonValue, context: RuntimeToolContext) => Promise<unknown>
  /** The same risk as in `governance`, for code that uses the tool as a `Tool` of `@skein/ai`. */
  readonly risk?: Risk
  /** As in `governance`. */
  readonly idempotent?: boolean
  readonly governance: ToolGovernance
  readonly variables?: readonly VariableDefinition[]
  /** The only tools that this tool may queue or invoke. */
  readonly uses?: readonly Ref<AnyTool>[]
  readonly timeoutMs?: number
}

/** The context that a tool receives in the runtime: the context of every `Tool`, and the thread. */
export interface RuntimeToolContext extends ToolContext {
  readonly state: ThreadState
  /** A key that is the same for every attempt of one call, even after a crash. */
  readonly idempotencyKey: string
  /** The prompt's settings for this tool. */
  readonly options?: JsonObject
}
