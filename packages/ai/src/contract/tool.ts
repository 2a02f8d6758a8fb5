import { isPlainObject, type JsonObject, type JsonSchema, type JsonValue } from '@skein/base'
import type { ProviderMetadata } from './content.ts'

/** A model's request to run a tool. */
export interface ToolCall {
  readonly toolCallId: string
  readonly toolName: string
  readonly arguments: JsonObject
  /**
   * Set when the model's text was not one JSON object (malformed, or cut off by a limit). Such a
   * call never runs; the model is told. `arguments` is then `{}` and `text` is what it wrote.
   */
  readonly invalidArguments?: { readonly text: string; readonly reason: string }
  /** Ids of calls in the same message that must finish first (UAP §8.6). */
  readonly after?: readonly string[]
  readonly metadata?: ProviderMetadata
}

/** The result of one tool call, as it is sent to the model. */
export interface ToolResult {
  readonly toolCallId: string
  readonly result: unknown
  readonly isError?: boolean
  /** The called tool, so that vendors which match by name need no look-up. */
  readonly toolName?: string
  readonly metadata?: ProviderMetadata
}

/** A finished call, as the turn reports it (UPP §7.3). `duration` is in milliseconds. */
export interface ToolExecution {
  readonly toolName: string
  readonly toolCallId: string
  readonly arguments: JsonObject
  readonly result: unknown
  readonly isError: boolean
  readonly duration: number
}

/** Second argument of `run` and `approval`. The agent layer passes a superset. */
export interface ToolContext {
  readonly signal: AbortSignal
  readonly toolCallId: string
  readonly toolName: string
}

/**
 * A function the model may call (UPP §11.1). Arguments are untrusted: `llm()` never validates
 * them (UPP §11.2); `tool()` builds tools that validate in their own `run`.
 *
 * `run` gets `(params, context)` when it declares two parameters or is marked by
 * `withToolContext`, else `(params)` alone (UAP §8.4).
 */
export interface Tool {
  readonly name: string
  readonly description: string
  readonly parameters: JsonSchema
  readonly run: (params: never, context: never) => unknown
  /** `false` or `deny(reason)` denies; `defer(...)` suspends the call as data. */
  readonly approval?: (params: never, context: never) => ApprovalResult | Promise<ApprovalResult>
  readonly metadata?: ProviderMetadata
  /** UAP §8.5: runs before the rest of its batch, one at a time. */
  readonly sequential?: boolean
  /** UAP §8.5: names of tools whose calls must succeed first. */
  readonly dependsOn?: readonly string[]
  /** How much harm a call can do; governance and the runtime decide by it. */
  readonly risk?: ToolRisk
  /** Longest run in milliseconds; then the call is an error result and its signal aborts. */
  readonly timeoutMs?: number
}

/** The risk tiers of tools, rising. */
export const TOOL_RISKS = ['read_only', 'write_low_risk', 'write_high_risk'] as const
/** `read_only` changes nothing; a low-risk write can be undone; a high-risk write needs approval. */
export type ToolRisk = (typeof TOOL_RISKS)[number]

/** What a call waits for, as plain data: it can be stored and answered in another process. */
export interface DeferRequest {
  readonly kind: 'approval' | 'input' | 'child' | 'timer'
  readonly request: JsonValue
}

const deferred: unique symbol = Symbol.for('skein.deferred')

/** A request that `defer` has marked as meant. */
export interface Deferred extends DeferRequest {
  readonly [deferred]: true
}

/** Returned by `run` or `approval` to end the turn with an open call instead of a result. */
export function defer(request: DeferRequest): Deferred {
  return Object.freeze({ ...request, [deferred]: true as const })
}

/** True for what `defer` made, also in another copy of this package. */
export function isDeferred(value: unknown): value is Deferred {
  return typeof value === 'object' && value !== null && deferred in value
}

const denied: unique symbol = Symbol.for('skein.denied')

/** A refusal with its reason, which is sent to the model. */
export interface Denied {
  readonly reason: string
  readonly [denied]: true
}

/** Returned by `approval` to say why a call may not run. */
export function deny(reason: string): Denied {
  return Object.freeze({ reason, [denied]: true as const })
}

/** True for what `deny` made, also in another copy of this package. */
export function isDenied(value: unknown): value is Denied {
  return typeof value === 'object' && value !== null && denied in value
}

/** What `approval` may answer. */
export type ApprovalResult = boolean | Deferred | Denied

/** What became of one call. The executor answers one per call, in call order. */
export type ToolOutcome =
  | { readonly type: 'done'; readonly result: unknown }
  | {
      readonly type: 'error'
      readonly message: string
      /** `TOOL_RESULT_NOT_JSON`: the tool did its work, but what it returned cannot be passed on. */
      readonly code?: string
      readonly cause?: unknown
    }
  | { readonly type: 'denied'; readonly reason: string }
  | { readonly type: 'deferred'; readonly request: DeferRequest }

/**
 * Hooks around the tool loop of one instance (UPP §11.3, signatures from UAP §10.4; the returns of
 * `onBeforeCall` and `onAfterCall` from UPP 1.2). The call itself comes last. A call to an unknown
 * tool has no tool to report and fires none of them but `onMaxIterations`.
 */
export interface ToolUseStrategy {
  /** Tool rounds after which the loop stops. Default 10; 0 leaves the calls to the caller. */
  readonly maxIterations?: number
  /** Calls that may run at once. Default: all. */
  readonly maxConcurrency?: number
  readonly onToolCall?: (tool: Tool, params: JsonObject, call: ToolCall) => void | Promise<void>
  /** `false` skips the call with an error result; `{ proceed, params }` may replace the arguments. */
  readonly onBeforeCall?: (
    tool: Tool,
    params: JsonObject,
    call: ToolCall,
  ) => BeforeCallResult | Promise<BeforeCallResult>
  /** `{ result }` replaces what the model sees. */
  readonly onAfterCall?: (
    tool: Tool,
    params: JsonObject,
    result: unknown,
    call: ToolCall,
  ) => AfterCallResult | Promise<AfterCallResult>
  readonly onError?: (
    tool: Tool,
    params: JsonObject,
    error: Error,
    call: ToolCall,
  ) => void | Promise<void>
  /** May throw to fail the turn instead of ending it. */
  readonly onMaxIterations?: (iterations: number) => void | Promise<void>
}

/** What `onBeforeCall` may answer. */
export type BeforeCallResult =
  void | boolean | { readonly proceed: boolean; readonly params?: JsonObject }
/** What `onAfterCall` may answer. */
export type AfterCallResult = void | { readonly result: unknown }

/** Deeper arguments are refused: writing them out again would exhaust the stack. */
const MAX_DEPTH = 512

/** The arguments of a call, or why its text is not one JSON object. */
export type ParsedArguments =
  | { readonly arguments: JsonObject; readonly invalid?: undefined }
  | { readonly arguments?: undefined; readonly invalid: { text: string; reason: string } }

/**
 * The text of a model's arguments as an object. Nothing is guessed: text that is not one complete
 * JSON object is invalid, so that a truncated call never runs. No text at all means no arguments.
 */
export function parseArguments(text: string): ParsedArguments {
  if (text.trim() === '') return { arguments: {} }
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    return invalid(text, error instanceof Error ? error.message : 'not JSON')
  }
  if (!isPlainObject(value)) return invalid(text, 'not a JSON object')
  if (!isShallow(value, text)) return invalid(text, `nested deeper than ${MAX_DEPTH} levels`)
  return { arguments: value as JsonObject } // JSON.parse gave it
}

function invalid(text: string, reason: string): ParsedArguments {
  return { invalid: { text, reason } }
}

/** Walks level by level, so that depth costs no stack. Also takes `__proto__` keys away on the way. */
function isShallow(root: object, text: string): boolean {
  const mayHoldProto = text.includes('__proto__') || text.includes('\\u')
  if (!mayHoldProto && text.length < 2 * MAX_DEPTH) return true
  let level: object[] = [root]
  for (let depth = 0; level.length > 0; depth++) {
    if (depth >= MAX_DEPTH) return false
    const next: object[] = []
    for (const node of level) {
      // An own `__proto__` is harmless until a tool copies it with Object.assign or a deep merge.
      if (mayHoldProto && Object.hasOwn(node, '__proto__'))
        Reflect.deleteProperty(node, '__proto__')
      for (const child of Object.values(node) as unknown[])
        if (typeof child === 'object' && child !== null) next.push(child)
    }
    level = next
  }
  return true
}
