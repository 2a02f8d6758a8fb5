import { type Clock, systemClock } from '@skein/base'
import { isUPPError, type Message, messageToJSON } from '@skein/ai'
import type { Span, SpanAttributes, Tracer } from '@skein/ai/middleware'
import type { Middleware, MiddlewareContext } from '../contract/agent-types.ts'
import type { AgentState } from '../state/state.ts'

/** Options of `tracing`. */
export interface TracingOptions {
  /** E.g. `trace.getTracer('my-app')` of `@opentelemetry/api`. */
  readonly tracer: Tracer
  /** The agent's name, for the span's name and `gen_ai.agent.name`. */
  readonly name?: string
  /** Whether spans contain messages, which may be private. Default false. */
  readonly captureContent?: boolean
  /** Attributes of every span. */
  readonly attributes?: SpanAttributes
  /**
   * Returns the OpenTelemetry context that contains the parent of new spans. Default: the tracer uses the
   * active context.
   */
  readonly context?: () => unknown
  readonly clock?: Clock
}

const INTERNAL = 0
const STATUS_ERROR = 2

/**
 * Creates one `invoke_agent` span per run, as the OpenTelemetry conventions for generative AI name it. Spans
 * of inferences and tools come from `telemetryMiddleware` of `@skein/ai`, used as `llmMiddleware`.
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
      const { agent, state, input } = context
      const spanOptions = {
        kind: INTERNAL,
        startTime: new Date(clock.now()),
        attributes: defined({
          ...attributes,
          'gen_ai.operation.name': 'invoke_agent',
          'gen_ai.agent.id': agent.id,
          'gen_ai.agent.name': name,
          'gen_ai.provider.name': agent.model.provider.name,
          'gen_ai.request.model': agent.model.modelId,
          'gen_ai.conversation.id': sessionOf(state),
          'gen_ai.input.messages': captureContent ? text([input]) : undefined,
        }),
      }
      const title = name === undefined ? 'invoke_agent' : `invoke_agent ${name}`
      const parent = options.context ? [options.context()] : []
      spans.set(context.metadata, tracer.startSpan(title, spanOptions, ...parent))
    },
    after(context, result) {
      const { turn, state, stopReason, interrupts } = result
      const { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens } = turn.usage
      const newMessages = turn.messages.filter((message) => message !== context.input)
      const more = {
        'gen_ai.usage.input_tokens': inputTokens,
        'gen_ai.usage.output_tokens': outputTokens,
        'gen_ai.usage.cache_read.input_tokens': cacheReadTokens,
        'gen_ai.usage.cache_creation.input_tokens': cacheWriteTokens,
        'gen_ai.response.finish_reasons': [turn.rawStopReason ?? turn.stopReason],
        // Set a second time, because a session id that was created for this run is known only now.
        'gen_ai.conversation.id': sessionOf(state),
        'skein.agent.steps': state.step,
        'skein.agent.stop_reason': stopReason,
        'skein.agent.interrupts': interrupts?.length,
        'gen_ai.output.messages': captureContent ? text(newMessages) : undefined,
      }
      end(context, defined(more))
    },
    onError(context, error) {
      end(context, { 'error.type': isUPPError(error) ? error.code : error.name }, error)
    },
  }
}

function sessionOf({ metadata: { sessionId } }: AgentState): string | undefined {
  return typeof sessionId === 'string' ? sessionId : undefined
}

/** Removes attributes that are undefined, because a tracer would record them. */
function defined(attributes: Readonly<Record<string, unknown>>): SpanAttributes {
  const entries = Object.entries(attributes).filter(([, value]) => value !== undefined)
  return Object.fromEntries(entries) as SpanAttributes // `Object.fromEntries` loses the types of the values
}

function text(messages: readonly Message[]): string {
  return JSON.stringify(messages.map(messageToJSON))
}
