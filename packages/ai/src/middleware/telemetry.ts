import { type Clock, systemClock } from '@skein/base'
import { isUPPError } from '../contract/error.ts'
import type {
  AnyRequest,
  AnyResponse,
  Middleware,
  MiddlewareContext,
} from '../contract/middleware.ts'
import type { ToolCall, ToolOutcome } from '../contract/tool.ts'
import {
  AnswerRecord,
  inputContent,
  jsonText,
  promptContent,
  requestAttributes,
  resultAttributes,
  toolAttributes,
} from './telemetry-attributes.ts'

/** Settings of `telemetryMiddleware`. */
export interface TelemetryOptions {
  /** E.g. `trace.getTracer('my-app')` of `@opentelemetry/api`. */
  readonly tracer: Tracer
  /** Whether spans contain messages, arguments and results, which may be private. Default false. */
  readonly captureContent?: boolean
  /** Attributes of every span, e.g. `{ 'gen_ai.conversation.id': id }`. */
  readonly attributes?: SpanAttributes
  /**
   * Returns the OpenTelemetry context that contains the parent of new spans. Default: the tracer uses the
   * active context.
   */
  readonly context?: () => unknown
  /** The clock of embedding and image calls, whose requests have none. */
  readonly clock?: Clock
}

const CLIENT = 2
const INTERNAL = 0
const STATUS_ERROR = 2

/**
 * Creates spans named by the OpenTelemetry conventions for generative AI: `chat` for every inference,
 * `execute_tool` for every tool run, `embeddings`, and `generate_content` for images.
 *
 *     llm({ model, middleware: [telemetryMiddleware({ tracer: trace.getTracer('my-app') })] })
 */
export function telemetryMiddleware(options: TelemetryOptions): Middleware {
  const telemetry = new Telemetry(options)
  return {
    name: 'telemetry',
    onRequest: (context) => telemetry.startCall(context),
    async *wrapInference(request, next, context) {
      const { clock } = request
      const span = telemetry.startChat(context, request)
      const answer = new AnswerRecord(request, context, options.captureContent === true)
      try {
        for await (const events of next(request)) {
          answer.push(events)
          yield events
        }
        span.end(clock, answer.attributes())
      } catch (error) {
        span.fail(clock, error, answer.attributes())
        throw error
      } finally {
        // Ends the span if the reader left the loop early, without an error and with the answer so far. In
        // all other cases the span has ended already, and this call does nothing.
        span.end(clock, answer.attributes())
      }
    },
    onToolCall: (call, context) => telemetry.startTool(call, context),
    onToolResult: (call, result, context, outcome) =>
      telemetry.endTool(call, { result, outcome, context }),
    onEnd: (context) => telemetry.endCall(context),
    onAbort: (error, context) => telemetry.failCall(error, context),
    onError: (error, context) => telemetry.failCall(error, context),
  }
}

/** The open spans and tool calls of one call. */
interface OpenCall {
  /**
   * The open spans, in the order of their start. Each span ends once; later attempts to end it are ignored.
   */
  readonly spans: Set<OpenSpan>
  readonly tools: Map<string, { readonly call: ToolCall; readonly startedAt: number }>
}

class Telemetry {
  readonly #options: TelemetryOptions
  readonly #calls = new WeakMap<MiddlewareContext, OpenCall>()

  constructor(options: TelemetryOptions) {
    this.#options = options
  }

  /** Starts the span of an embedding or image call. LLM calls have one span per inference instead. */
  startCall(context: MiddlewareContext): void {
    const { request, modality, modelId } = context
    if ('messages' in request) return
    const operation = modality === 'embedding' ? 'embeddings' : 'generate_content'
    const content = this.#options.captureContent === true ? promptContent(request) : {}
    const attributes = { ...requestAttributes(operation, request, context), ...content }
    this.#start(context, { name: `${operation} ${modelId}`, kind: CLIENT, attributes })
  }

  startChat(
    context: MiddlewareContext,
    request: Extract<AnyRequest, { messages: unknown }>,
  ): OpenSpan {
    const content = this.#options.captureContent === true ? inputContent(request) : {}
    const attributes = { ...requestAttributes('chat', request, context), ...content }
    return this.#start(context, { name: `chat ${context.modelId}`, kind: CLIENT, attributes })
  }

  /**
   * Records the start of a tool. Its span is made when the tool ends; a deferred call has no end and no span.
   */
  startTool(call: ToolCall, context: MiddlewareContext): void {
    const startedAt = this.#clock(context).now()
    this.#open(context).tools.set(call.toolCallId, { call, startedAt })
  }

  endTool(
    { toolCallId }: ToolCall,
    ended: { result: unknown; outcome: ToolOutcome; context: MiddlewareContext },
  ): void {
    const { context, outcome, result } = ended
    const { tools } = this.#open(context)
    const tool = tools.get(toolCallId)
    if (!tool) return
    tools.delete(toolCallId)
    const span = this.#startTool(context, tool.call, tool.startedAt)
    const isCaptured = this.#options.captureContent === true
    const content: SpanAttributes = isCaptured
      ? { 'gen_ai.tool.call.result': jsonText(result) }
      : {}
    const clock = this.#clock(context)
    if (outcome.type !== 'error') return span.end(clock, content)
    // The error message of a tool may be as private as its result, so it too is recorded only with `captureContent`.
    const error = new Error(isCaptured ? outcome.message : '')
    error.name = outcome.cause instanceof Error ? outcome.cause.name : 'ToolError'
    span.fail(clock, error, content)
  }

  endCall(context: MiddlewareContext): void {
    const { response } = context
    const attributes = response ? this.#resultAttributes(response) : {}
    for (const span of this.#open(context).spans) span.end(this.#clock(context), attributes)
  }

  failCall(error: Error, context: MiddlewareContext): void {
    const clock = this.#clock(context)
    const { spans, tools } = this.#open(context)
    for (const span of spans) span.fail(clock, error)
    for (const { call, startedAt } of tools.values())
      this.#startTool(context, call, startedAt).fail(clock, error)
    tools.clear()
  }

  #resultAttributes(response: AnyResponse): SpanAttributes {
    return 'cycles' in response ? {} : resultAttributes(response)
  }

  #startTool(context: MiddlewareContext, call: ToolCall, startedAt: number): OpenSpan {
    const { request } = context
    const toolList = 'tools' in request ? request.tools : []
    const tool = toolList.find(({ name }) => name === call.toolName)
    const content: SpanAttributes =
      this.#options.captureContent === true
        ? { 'gen_ai.tool.call.arguments': jsonText(call.arguments) }
        : {}
    const attributes = { ...toolAttributes(call, tool), ...content }
    const name = `execute_tool ${call.toolName}`
    return this.#start(context, { name, kind: INTERNAL, attributes, startedAt })
  }

  #start(
    context: MiddlewareContext,
    span: { name: string; kind: number; attributes: SpanAttributes; startedAt?: number },
  ): OpenSpan {
    const { tracer, attributes: common, context: parent } = this.#options
    const { name, kind, startedAt = this.#clock(context).now() } = span
    const { spans } = this.#open(context)
    const started = tracer.startSpan(
      name,
      { kind, attributes: { ...common, ...span.attributes }, startTime: new Date(startedAt) },
      ...(parent ? [parent()] : []),
    )
    const open = new OpenSpan(started, () => spans.delete(open))
    spans.add(open)
    return open
  }

  #open(context: MiddlewareContext): OpenCall {
    const callSpans = this.#calls.get(context)
    if (callSpans) return callSpans
    const call: OpenCall = { spans: new Set(), tools: new Map() }
    this.#calls.set(context, call)
    return call
  }

  #clock({ request }: MiddlewareContext): Clock {
    return 'clock' in request ? request.clock : (this.#options.clock ?? systemClock)
  }
}

/** A span that ends at most once. */
class OpenSpan {
  readonly #span: Span
  readonly #onEnd: () => void
  #isOpen = true

  constructor(span: Span, onEnd: () => void) {
    this.#span = span
    this.#onEnd = onEnd
  }

  end(clock: Clock, attributes: SpanAttributes = {}): void {
    if (!this.#isOpen) return
    this.#isOpen = false
    this.#onEnd()
    this.#span.setAttributes(attributes)
    this.#span.end(new Date(clock.now()))
  }

  fail(clock: Clock, error: unknown, attributes: SpanAttributes = {}): void {
    if (!this.#isOpen) return
    const type = isUPPError(error) ? error.code : error instanceof Error ? error.name : '_OTHER'
    const message = error instanceof Error ? error.message : ''
    this.#span.setStatus({ code: STATUS_ERROR, ...(message !== '' && { message }) })
    this.end(clock, { ...attributes, 'error.type': type })
  }
}

/** The part of an OpenTelemetry tracer that `telemetryMiddleware` uses. */
export interface Tracer {
  startSpan(name: string, options?: SpanOptions, context?: unknown): Span
}

/** The options for starting a span. */
export interface SpanOptions {
  /** OpenTelemetry's span kind: 0 internal, 2 client. */
  readonly kind?: number
  readonly attributes?: SpanAttributes
  readonly startTime?: Date
}

/** The value of one attribute. */
export type SpanAttributeValue = string | number | boolean | string[]
/** Attributes by name. Undefined values are not set. */
export type SpanAttributes = Record<string, SpanAttributeValue | undefined>

/** The part of an OpenTelemetry span that is used. */
export interface Span {
  setAttributes(attributes: SpanAttributes): unknown
  /** OpenTelemetry's status code: 2 is an error. */
  setStatus(status: { code: number; message?: string }): unknown
  end(endTime?: Date): void
}
