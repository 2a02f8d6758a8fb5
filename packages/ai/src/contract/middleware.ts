import type { EmbeddingRequest, EmbeddingResult } from '../embedding.ts'
import type { Modality } from './error.ts'
import type { StreamEvent } from './event.ts'
import type { ImageRequest, ImageResult } from '../image.ts'
import type { BoundLLMModel, LLMRequest } from './provider.ts'
import type { ToolCall, ToolOutcome } from './tool.ts'
import type { Turn } from './turn.ts'

/** The request of any modality. */
export type AnyRequest = LLMRequest | EmbeddingRequest | ImageRequest
/** The response of any modality. */
export type AnyResponse = Turn | EmbeddingResult | ImageResult

/**
 * The context that lifecycle hooks get (UPP §10.3), one object per call. `request`, with the changes of
 * `onRequest`, is the request that is sent.
 */
export interface MiddlewareContext {
  readonly modality: Modality
  readonly modelId: string
  readonly provider: string
  readonly streaming: boolean
  /** `onRequest` may replace the request or its fields; the edited request is sent. */
  request: AnyRequest
  response?: AnyResponse
  readonly state: Map<string, unknown>
  /**
   * Converts the model's structured data to the caller's schema, if the vendor answers in another form (LLM
   * calls only).
   */
  readonly readData?: BoundLLMModel['readData']
  /** See `BoundLLMModel.identity` (LLM calls only). */
  readonly identity?: BoundLLMModel['identity']
  /** Milliseconds since the epoch. */
  readonly startTime: number
  endTime?: number
}

/** The context that the hooks of stream events get (UPP §10.4). */
export interface StreamContext {
  readonly state: Map<string, unknown>
}

/**
 * The result of a stream hook: one event instead of the given one, several events, or null to drop the given
 * one (UPP §10.6).
 */
export type StreamEventResult = StreamEvent | readonly StreamEvent[] | null

/** Intercepts the calls of one instance (UPP §10). Hooks may be async. */
export interface Middleware {
  readonly name: string
  readonly onStart?: (context: MiddlewareContext) => void | Promise<void>
  /** Runs exactly once for every successful call, however the stream is consumed. */
  readonly onEnd?: (context: MiddlewareContext) => void | Promise<void>
  readonly onError?: (error: Error, context: MiddlewareContext) => void | Promise<void>
  /** Called instead of `onError` when the call is cancelled. Without this hook, `onError` is called. */
  readonly onAbort?: (error: Error, context: MiddlewareContext) => void | Promise<void>
  readonly onRequest?: (context: MiddlewareContext) => void | Promise<void>
  /** Called before each inference of the tool loop; may return a different request for that inference. */
  readonly onCycle?: (
    request: LLMRequest,
    cycle: number,
    context: MiddlewareContext,
  ) => LLMRequest | void | Promise<LLMRequest | void>
  readonly onResponse?: (context: MiddlewareContext) => void | Promise<void>
  /** Called between `onResponse` and `onEnd`, for the last middleware first. */
  readonly onTurn?: (turn: Turn, context: MiddlewareContext) => void | Promise<void>
  readonly onStreamEvent?: (
    event: StreamEvent,
    context: StreamContext,
  ) => StreamEventResult | Promise<StreamEventResult>
  readonly onStreamEnd?: (context: StreamContext) => void | Promise<void>
  readonly onToolCall?: (call: ToolCall, context: MiddlewareContext) => void | Promise<void>
  readonly onToolResult?: (
    call: ToolCall,
    result: unknown,
    context: MiddlewareContext,
    /** Whether the call succeeded and, if not, why. */
    outcome: ToolOutcome,
  ) => void | Promise<void>
  /**
   * Wraps one inference; the first middleware is the outermost. Returns `next(request)`, or its own events
   * (as a cache does). No other hook can answer in place of the model.
   */
  readonly wrapInference?: (
    request: LLMRequest,
    next: (request: LLMRequest) => AsyncIterable<readonly StreamEvent[]>,
    context: MiddlewareContext,
  ) => AsyncIterable<readonly StreamEvent[]>
}

/** The hooks that only middleware of a model has; `onError` exists for agents too. */
const modelHooks: Readonly<Record<Exclude<keyof Middleware, 'name' | 'onError'>, true>> = {
  onStart: true,
  onEnd: true,
  onAbort: true,
  onRequest: true,
  onCycle: true,
  onResponse: true,
  onTurn: true,
  onStreamEvent: true,
  onStreamEnd: true,
  onToolCall: true,
  onToolResult: true,
  wrapInference: true,
}

/** True for a value with a hook that only middleware of a model has. */
export function hasModelHooks(middleware: unknown): boolean {
  if (typeof middleware !== 'object' || middleware === null) return false
  return Object.keys(modelHooks).some((name) => name in middleware)
}
