import type { EmbeddingRequest, EmbeddingResult } from '../embedding.ts'
import type { Modality } from './error.ts'
import type { StreamEvent } from './event.ts'
import type { ImageRequest, ImageResult } from '../image.ts'
import type { LLMRequest } from './provider.ts'
import type { ToolCall, ToolOutcome } from './tool.ts'
import type { Turn } from './turn.ts'

/** The request of any modality. */
export type AnyRequest = LLMRequest | EmbeddingRequest | ImageRequest
/** The response of any modality. */
export type AnyResponse = Turn | EmbeddingResult | ImageResult

/** Passed to lifecycle hooks (UPP §10.3). One object per call; what `onRequest` puts in `request` is sent. */
export interface MiddlewareContext {
  readonly modality: Modality
  readonly modelId: string
  readonly provider: string
  readonly streaming: boolean
  /** Replace it, or its fields, in `onRequest`: every edit is honoured. */
  request: AnyRequest
  response?: AnyResponse
  readonly state: Map<string, unknown>
  /** Milliseconds since the epoch. */
  readonly startTime: number
  endTime?: number
}

/** Passed to the hooks of stream events (UPP §10.4). */
export interface StreamContext {
  readonly state: Map<string, unknown>
}

/** What becomes of an event: replaced, expanded into several, or dropped with null (UPP §10.6). */
export type StreamEventResult = StreamEvent | readonly StreamEvent[] | null

/** Intercepts the calls of one instance (UPP §10). Every hook may be async. */
export interface Middleware {
  readonly name: string
  readonly onStart?: (context: MiddlewareContext) => void | Promise<void>
  /** Runs exactly once for every successful call, however the stream is consumed. */
  readonly onEnd?: (context: MiddlewareContext) => void | Promise<void>
  readonly onError?: (error: Error, context: MiddlewareContext) => void | Promise<void>
  /** On cancellation, instead of `onError`, for a middleware that has it. */
  readonly onAbort?: (error: Error, context: MiddlewareContext) => void | Promise<void>
  readonly onRequest?: (context: MiddlewareContext) => void | Promise<void>
  /** Before each inference of the tool loop; may replace the request of that cycle. */
  readonly onCycle?: (
    request: LLMRequest,
    cycle: number,
    context: MiddlewareContext,
  ) => LLMRequest | void | Promise<LLMRequest | void>
  readonly onResponse?: (context: MiddlewareContext) => void | Promise<void>
  /** Between `onResponse` and `onEnd`, in reverse order. */
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
    /** Whether the call succeeded, and why not. */
    outcome: ToolOutcome,
  ) => void | Promise<void>
  /**
   * Wraps one inference, innermost last: return `next(request)` or events of your own (a cache).
   * The only hook that may answer instead of the model.
   */
  readonly wrapInference?: (
    request: LLMRequest,
    next: (request: LLMRequest) => AsyncIterable<readonly StreamEvent[]>,
    context: MiddlewareContext,
  ) => AsyncIterable<readonly StreamEvent[]>
}
