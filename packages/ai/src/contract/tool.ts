import { type JsonObject, type JsonSchema, type JsonValue, SkeinError } from '@skein/base'
import type { ProviderMetadata } from './content.ts'

/** A model's request to run a tool. */
export interface ToolCall {
  readonly toolCallId: string
  readonly toolName: string
  readonly arguments: JsonObject
  /**
   * Set when the model's arguments were not one JSON object (malformed, or cut off by a limit). Such a call
   * never runs, and the model gets an error result. `arguments` is then `{}`, and `text` is the original
   * text.
   */
  readonly invalidArguments?: { readonly text: string; readonly reason: string }
  /** Ids of calls in the same message that must finish before this call starts (UAP §8.6). */
  readonly after?: readonly string[]
  readonly metadata?: ProviderMetadata
}

/** The result of one tool call, as it is sent to the model. */
export interface ToolResult {
  readonly toolCallId: string
  readonly result: unknown
  readonly isError?: boolean
  /** The name of the called tool, for vendors that match results by name. */
  readonly toolName?: string
  readonly metadata?: ProviderMetadata
}

/**
 * A finished call, as the turn reports it (UPP §7.3). `duration` is in milliseconds.
 *
 * This is a type alias and not an interface to save compile time. TypeScript compares the members of a union
 * with each other; it compares two uses of an alias by their type arguments, beginning with the name. Two
 * uses of an interface in `TypesOf` would be compared by the complete types of their tools, which doubled the
 * time of narrowing 100 results with a chain of `if`.
 */
export type ToolExecution<
  Name extends string = string,
  Arguments extends JsonObject = JsonObject,
  Result = unknown,
  IsError extends boolean = boolean,
> = {
  readonly toolName: Name
  readonly toolCallId: string
  readonly arguments: Arguments
  readonly result: Result
  readonly isError: IsError
  /** Set if it is unknown whether the call took effect; it did not end in time. */
  readonly isUnknown?: true
  readonly duration: number
}

/** The second argument of `run` and `approval`. Agents pass an object with more fields. */
export interface ToolContext {
  readonly signal: AbortSignal
  readonly toolCallId: string
  readonly toolName: string
}

/**
 * A function the model may call (UPP §11.1). Arguments are untrusted: `llm()` never validates them (UPP
 * §11.2); a tool built with `tool()` validates them in its own `run`.
 *
 * `run` may be an async generator: each value that it yields is shown while the tool runs, and the last value
 * is the result. `run` is called with `(params, context)` when it declares two parameters or is marked by
 * `withToolContext`, otherwise with `(params)` alone (UAP §8.4).
 */
export interface Tool {
  readonly name: string
  readonly description: string
  readonly parameters: JsonSchema
  readonly run: (params: never, context: never) => unknown
  /**
   * Returns the form of a result that the model sees. The application sees the result itself, in
   * `turn.toolExecutions` and in events.
   */
  readonly toModel?: (result: never) => unknown
  /** `true` lets the call run; `false` or `deny(reason)` denies it; `defer(...)` makes it wait. */
  readonly approval?: (params: never, context: never) => ApprovalResult | Promise<ApprovalResult>
  readonly metadata?: ProviderMetadata
  /** Whether calls of this tool run before the other calls of their message, one at a time (UAP §8.5). */
  readonly sequential?: boolean
  /** Names of tools that must have succeeded before this tool runs (UAP §8.5). */
  readonly dependsOn?: readonly string[]
  /** How much harm a call can do; governance and the runtime base their decisions on it. */
  readonly risk?: ToolRisk
  /**
   * Whether a second call with the same arguments does the same as one call. Such a call, like one that only reads, may
   * run again after its time limit.
   */
  readonly idempotent?: boolean
  /**
   * The longest duration of a call in milliseconds. Then its signal aborts. A call that may run again (`read_only` or
   * `idempotent`) gets an error result. Any other call has `stopGraceMs` more to end by itself; after that nobody
   * knows whether it took effect, and its outcome is `unknown`.
   */
  readonly timeoutMs?: number
}

/** The risk levels of tools, from lowest to highest. */
export const TOOL_RISKS = ['read_only', 'write_low_risk', 'write_high_risk'] as const

/** `read_only` changes nothing; a low-risk write can be undone; a high-risk write needs approval. */
export type ToolRisk = (typeof TOOL_RISKS)[number]

/**
 * A description of what a call waits for, as plain data: it can be stored and answered in another process.
 */
export interface DeferRequest {
  /** `in_doubt`: a crash cut the call off, and a person has to find out whether it had its effect. */
  readonly kind: 'approval' | 'input' | 'in_doubt' | 'child' | 'timer'
  readonly request: JsonValue
}

const deferred: unique symbol = Symbol.for('skein.deferred')

/** A request made by `defer`; the mark distinguishes it from an ordinary result. */
export interface Deferred extends DeferRequest {
  readonly [deferred]: true
}

const DEFER_KINDS: readonly DeferRequest['kind'][] = ['approval', 'input', 'child', 'timer']

/**
 * Makes a value that `run` or `approval` returns to end the turn with an open call instead of a result. Throws for a
 * request that could not be stored or answered; thrown inside a tool, this becomes the error of its call.
 */
export function defer(request: DeferRequest): Deferred {
  const { kind, request: asked } = (request ?? {}) as Partial<DeferRequest>
  const problem = DEFER_KINDS.some((known) => known === kind)
    ? asked === undefined || typeof asked === 'function' || typeof asked === 'symbol'
      ? `request is ${asked === undefined ? 'missing' : `a ${typeof asked}`}`
      : undefined
    : `kind is ${JSON.stringify(kind) ?? 'missing'}`
  if (problem !== undefined)
    throw new SkeinError(`A call cannot be deferred like this: ${problem}.`, {
      code: 'DEFER_REQUEST_INVALID',
      hint: `defer({ kind, request }): kind is one of ${DEFER_KINDS.join(', ')}, request is JSON.`,
    })
  return Object.freeze({ ...request, [deferred]: true as const })
}

/** True for a value made by `defer`, also by another copy of this package. */
export function isDeferred(value: unknown): value is Deferred {
  return typeof value === 'object' && value !== null && deferred in value
}

const denied: unique symbol = Symbol.for('skein.denied')

/** A refusal with its reason, which is sent to the model. */
export interface Denied {
  readonly reason: string
  readonly [denied]: true
}

/** Makes a value that `approval` returns to say why a call may not run. */
export function deny(reason: string): Denied {
  return Object.freeze({ reason, [denied]: true as const })
}

/** True for a value made by `deny`, also by another copy of this package. */
export function isDenied(value: unknown): value is Denied {
  return typeof value === 'object' && value !== null && denied in value
}

/** The possible return values of `approval`. */
export type ApprovalResult = boolean | Deferred | Denied

/** The outcome of one call. The executor returns one per call, in call order. */
export type ToolOutcome =
  | {
      readonly type: 'done'
      readonly result: unknown
      /** The form of the result that the model sees, if it differs from `result`. */
      readonly modelResult?: unknown
    }
  | {
      readonly type: 'error'
      readonly message: string
      /**
       * `TOOL_RESULT_NOT_JSON`: the tool has run, but its return value cannot be converted to JSON. `TOOL_STOPPED`: the
       * tool has thrown because its signal had aborted.
       */
      readonly code?: string
      readonly cause?: unknown
    }
  | { readonly type: 'denied'; readonly reason: string }
  | { readonly type: 'deferred'; readonly request: DeferRequest }
  /**
   * The call started and did not end in time, or was stopped while it ran, so it may or may not have taken effect. It
   * must not be repeated blindly.
   */
  | {
      readonly type: 'unknown'
      readonly message: string
      /** Whether the tool has stopped, so that it does nothing more; otherwise it may still run. */
      readonly hasEnded?: true
    }

/**
 * Hooks around the tool loop of one instance (UPP §11.3, signatures from UAP §10.4; the return values of
 * `onBeforeCall` and `onAfterCall` from UPP 1.2). The call is the last parameter. For a call to an unknown
 * tool only `onMaxIterations` is called, because there is no tool to pass.
 */
export interface ToolUseStrategy {
  /**
   * The number of tool rounds after which the loop stops. Default 10; with 0 the caller has to run the calls.
   */
  readonly maxIterations?: number
  /** The largest number of calls that run at the same time. Default: no limit. */
  readonly maxConcurrency?: number
  /**
   * How long a call that may not run again can take to end after its time limit or, if its tool has the risk of a write,
   * after an abort, in milliseconds. A result within this time counts. Default 5,000.
   */
  readonly stopGraceMs?: number
  readonly onToolCall?: (tool: Tool, params: JsonObject, call: ToolCall) => void | Promise<void>
  /** `false` skips the call with an error result; `{ proceed, params }` may replace the arguments. */
  readonly onBeforeCall?: (
    tool: Tool,
    params: JsonObject,
    call: ToolCall,
  ) => BeforeCallResult | Promise<BeforeCallResult>
  /** `{ result }` replaces the result that the model sees. */
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
  /**
   * Called when `maxIterations` is reached. It may throw to fail the turn, which would otherwise end with
   * open calls.
   */
  readonly onMaxIterations?: (iterations: number) => void | Promise<void>
}

/** The possible return values of `onBeforeCall`. */
export type BeforeCallResult =
  void | boolean | { readonly proceed: boolean; readonly params?: JsonObject }

/** The possible return values of `onAfterCall`. */
export type AfterCallResult = void | { readonly result: unknown }
