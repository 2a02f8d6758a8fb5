import { systemClock, type Clock } from '@skein/base'
import { isUPPError, messageToJSON, type Message } from '@skein/ai'
import type { Span, SpanAttributes, Tracer } from '@skein/ai/middleware'
import type { GenerateResult } from '../agent.ts'
import type { Middleware, MiddlewareContext } from '../middleware.ts'

export interface TracingOptions {
  /** E.g. `trace.getTracer('my-app')` of `@opentelemetry/api`. */
  readonly tracer: Tracer
  /** The agent's name, for the span's name and `gen_ai.agent.name`. */
  readonly name?: string
  /** Put messages into the spans. They may be private; default false. */
  readonly captureContent?: boolean
  /** On every span. */
  readonly attributes?: SpanAttributes
  /** The parent of new spans. Default: the tracer's own choice, the active context. */
  readonly context?: () => unknown
  readonly clock?: Clock
}

const INTERNAL = 0
const STATUS_ERROR = 2

/**
 * One `invoke_agent` span for every run, as the OpenTelemetry conventions for generative AI name it.
 * Spans of inferences and tools come from `telemetryMiddleware` of `@skein/ai`, as `llmMiddleware`.
 */
export function tracing(options: TracingOptions): Middleware {
  const { tracer, name, attributes, captureContent = false, clock = systemClock } = options
  const spans = new WeakMap<object, Span>()
  const end = ({ metadata }: MiddlewareContext, more: SpanAttributes, error?: Error): void => {
    const span = spans.get(metadata)
    if (!span) return
    spans.delete(metadata)
    if (error) span.setStatus({ code: STATUS_ERROR, message: error.message })
    span.setAttributes(more)
    span.end(new Date(clock.now()))
  }
  return {
    name: 'tracing',
    before(context) {
      const started = {
        kind: INTERNAL,
        startTime: new Date(clock.now()),
        attributes: {
          ...attributes,
          ...startAttributes(context, name),
          ...(captureContent && { 'gen_ai.input.messages': text([context.input]) }),
        },
      }
      const title = name === undefined ? 'invoke_agent' : `invoke_agent ${name}`
      const parent = options.context ? [options.context()] : []
      spans.set(context.metadata, tracer.startSpan(title, started, ...parent))
    },
    after(context, result) {
      const produced = result.turn.messages.filter((message) => message !== context.input)
      end(context, {
        ...endAttributes(result),
        ...(captureContent && { 'gen_ai.output.messages': text(produced) }),
      })
    },
    onError(context, error) {
      end(context, { 'error.type': isUPPError(error) ? error.code : error.name }, error)
    },
  }
}

function startAttributes(
  { agent, state }: MiddlewareContext,
  name: string | undefined,
): SpanAttributes {
  const { sessionId } = state.metadata
  return {
    'gen_ai.operation.name': 'invoke_agent',
    'gen_ai.agent.id': agent.id,
    ...(name !== undefined && { 'gen_ai.agent.name': name }),
    'gen_ai.provider.name': agent.model.provider.name,
    'gen_ai.request.model': agent.model.modelId,
    ...(typeof sessionId === 'string' && { 'gen_ai.conversation.id': sessionId }),
  }
}

function endAttributes({ turn, state, stopReason, interrupts }: GenerateResult): SpanAttributes {
  const { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens } = turn.usage
  const { sessionId } = state.metadata
  return {
    'gen_ai.usage.input_tokens': inputTokens,
    'gen_ai.usage.output_tokens': outputTokens,
    'gen_ai.usage.cache_read.input_tokens': cacheReadTokens,
    'gen_ai.usage.cache_creation.input_tokens': cacheWriteTokens,
    'gen_ai.response.finish_reasons': [turn.rawStopReason ?? turn.stopReason],
    // A session that was made for this run is known only now.
    ...(typeof sessionId === 'string' && { 'gen_ai.conversation.id': sessionId }),
    'skein.agent.steps': state.step,
    ...(stopReason && { 'skein.agent.stop_reason': stopReason }),
    ...(interrupts && { 'skein.agent.interrupts': interrupts.length }),
  }
}

function text(messages: readonly Message[]): string {
  return JSON.stringify(messages.map(messageToJSON))
}
