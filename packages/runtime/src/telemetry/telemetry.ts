import { AsyncLocalStorage } from 'node:async_hooks'
import type { Middleware } from '@skein/ai'
import { type Span, type SpanAttributes, telemetryMiddleware } from '@skein/ai/middleware'
import type { Clock } from '@skein/base'

/** The settings of `createRuntime({ telemetry })`. */
export interface RuntimeTelemetry {
  /** `import * as api from '@opentelemetry/api'`. Its global providers are used unless others are given. */
  readonly api: OpenTelemetryApi
  /** Default: `api.trace`. */
  readonly tracerProvider?: Pick<OpenTelemetryApi['trace'], 'getTracer'>
  /** Default: `api.metrics`. */
  readonly meterProvider?: OpenTelemetryApi['metrics']
  /** Whether spans of inferences contain messages, which may be private. Default false. */
  readonly captureContent?: boolean
  /** Attributes of every span, e.g. `{ 'deployment.environment.name': 'staging' }`. */
  readonly attributes?: SpanAttributes
}

/**
 * The part of `@opentelemetry/api` that the runtime uses. Contexts are passed on unread, so their type is `unknown`.
 */
export interface OpenTelemetryApi {
  readonly ROOT_CONTEXT: unknown
  readonly trace: {
    getTracer(name: string, version?: string): RuntimeTracer
    setSpan(context: unknown, span: RuntimeSpan): unknown
    setSpanContext(context: unknown, spanContext: TraceParent): unknown
    getSpanContext(context: unknown): TraceParent | undefined
  }
  readonly context: {
    active(): unknown
    with<T>(context: unknown, work: () => T): T
  }
  readonly metrics: { getMeter(name: string, version?: string): RuntimeMeter }
}

/** Identifies a span, as in the header `traceparent` (W3C Trace Context). */
export interface TraceParent {
  readonly traceId: string
  readonly spanId: string
  readonly traceFlags: number
  readonly isRemote?: boolean
}

/** A span whose id can be read, so that other spans can be its children. */
export interface RuntimeSpan extends Span {
  spanContext(): TraceParent
}

/** The part of an OpenTelemetry tracer that the runtime uses. */
export interface RuntimeTracer {
  startSpan(
    name: string,
    options?: {
      kind?: number
      attributes?: SpanAttributes
      startTime?: Date
      links?: { context: TraceParent }[]
    },
    context?: unknown,
  ): RuntimeSpan
}

type InstrumentOptions = { description?: string; unit?: string }
type Attributes = Record<string, string | number | boolean>

/** The part of an OpenTelemetry meter that the runtime uses. */
export interface RuntimeMeter {
  createHistogram(name: string, options?: InstrumentOptions): Recorder
  createCounter(name: string, options?: InstrumentOptions): Adder
  createUpDownCounter(name: string, options?: InstrumentOptions): Adder
}

interface Recorder {
  record(value: number, attributes?: Attributes): void
}

interface Adder {
  add(value: number, attributes?: Attributes): void
}

const NAME = '@skein/runtime'
const STATUS_ERROR = 2

/** The tracer and the instruments of one runtime. */
export class Telemetry {
  readonly api: OpenTelemetryApi
  readonly clock: Clock
  readonly metrics: Instruments
  readonly #tracer: RuntimeTracer
  readonly #options: RuntimeTelemetry

  constructor(options: RuntimeTelemetry, clock: Clock) {
    const { api, tracerProvider = api.trace, meterProvider = api.metrics } = options
    this.api = api
    this.clock = clock
    this.metrics = instruments(meterProvider.getMeter(NAME))
    this.#tracer = tracerProvider.getTracer(NAME)
    this.#options = options
  }

  /** Starts a span. Without a parent, the span begins a new trace. */
  start(
    name: string,
    {
      attributes,
      parent = this.api.ROOT_CONTEXT,
      startTime = new Date(this.clock.now()),
      links = [],
    }: {
      readonly attributes: SpanAttributes
      readonly parent?: unknown
      readonly startTime?: Date
      readonly links?: readonly TraceParent[]
    },
  ): OpenSpan {
    const span = this.#tracer.startSpan(
      name,
      {
        kind: 0, // internal
        attributes: { ...this.#options.attributes, ...attributes },
        startTime,
        links: links.map((context) => ({ context })),
      },
      parent,
    )
    return new OpenSpan(this, span, parent)
  }

  /** Returns the middleware that makes the `chat` span of each inference, as a child of the span in this context. */
  inferenceMiddleware(parent: unknown, attributes: SpanAttributes): Middleware {
    const { attributes: common, captureContent } = this.#options
    return telemetryMiddleware({
      tracer: this.#tracer,
      captureContent,
      attributes: { ...common, ...attributes },
      context: () => parent,
    })
  }

  /** Returns a context in which the span that a stored `traceparent` names is the parent of new spans. */
  contextOf(traceparent: string | undefined): unknown {
    const parent = parseTraceparent(traceparent)
    const { trace, ROOT_CONTEXT } = this.api
    return parent ? trace.setSpanContext(ROOT_CONTEXT, parent) : ROOT_CONTEXT
  }

  /** Returns the `traceparent` of the span that is active in the calling code; undefined if there is none. */
  active(): string | undefined {
    const { trace, context } = this.api
    const span = trace.getSpanContext(context.active())
    return span && formatTraceparent(span)
  }
}

/** A span of the runtime, with the context in which its children start. Only the first `end` counts. */
export class OpenSpan {
  readonly context: unknown
  readonly traceparent: string | undefined
  readonly #telemetry: Telemetry
  readonly #span: RuntimeSpan
  #isOpen = true

  constructor(telemetry: Telemetry, span: RuntimeSpan, parent: unknown) {
    this.#telemetry = telemetry
    this.#span = span
    this.context = telemetry.api.trace.setSpan(parent, span)
    this.traceparent = formatTraceparent(span.spanContext())
  }

  /** Ends the span. If an error code is given, the span is marked as failed. */
  end(
    attributes: SpanAttributes = {},
    { error, at }: { readonly error?: string | undefined; readonly at?: Date } = {},
  ): void {
    if (!this.#isOpen) return
    this.#isOpen = false
    if (error !== undefined) this.#span.setStatus({ code: STATUS_ERROR })
    this.#span.setAttributes(defined({ ...attributes, 'error.type': error }))
    this.#span.end(at ?? new Date(this.#telemetry.clock.now()))
  }
}

/** Removes attributes that are undefined, because an SDK would record them. */
function defined(attributes: SpanAttributes): SpanAttributes {
  return Object.fromEntries(Object.entries(attributes).filter(([, value]) => value !== undefined))
}

interface Instruments {
  readonly turn: Recorder
  readonly queue: Recorder
  readonly wait: Recorder
  readonly commit: Recorder
  readonly inference: Recorder
  readonly tokens: Recorder
  readonly cost: Adder
  readonly waits: Adder
  readonly drains: Adder
  readonly failures: Adder
}

/**
 * Creates the instruments. `gen_ai.client.*` are names of the OpenTelemetry conventions for generative AI;
 * durations are in seconds, as these conventions require.
 */
function instruments(meter: RuntimeMeter): Instruments {
  const seconds = (name: string, description: string): Recorder =>
    meter.createHistogram(name, { unit: 's', description })
  return {
    turn: seconds('skein.turn.duration', 'From the start of a turn to its end, waiting included.'),
    queue: seconds('skein.queue.duration', 'How long a message was queued before a side took it.'),
    wait: seconds('skein.wait.duration', 'How long a call waited for a person, client or child.'),
    commit: seconds('skein.commit.duration', 'How long a commit of a drain took.'),
    inference: seconds('gen_ai.client.operation.duration', 'How long an inference took.'),
    tokens: meter.createHistogram('gen_ai.client.token.usage', {
      unit: '{token}',
      description: 'Tokens of one inference, by kind.',
    }),
    cost: meter.createCounter('skein.cost', { unit: 'USD', description: 'Cost of inferences.' }),
    waits: meter.createCounter('skein.waits', {
      unit: '{wait}',
      description: 'Calls that began to wait for a person, client or child.',
    }),
    drains: meter.createUpDownCounter('skein.drains.running', {
      unit: '{drain}',
      description: 'Drains that run now.',
    }),
    failures: meter.createCounter('skein.failures', {
      unit: '{failure}',
      description: 'Failures, by code.',
    }),
  }
}

const TRACEPARENT = /^[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/

/** Reads a `traceparent`. Returns undefined when it is not valid (W3C Trace Context). */
export function parseTraceparent(header: string | null | undefined): TraceParent | undefined {
  const [, traceId, spanId, flags] = TRACEPARENT.exec(header ?? '') ?? []
  if (traceId === undefined || spanId === undefined || flags === undefined) return undefined
  if (header!.startsWith('ff') || /^0+$/.test(traceId) || /^0+$/.test(spanId)) return undefined
  return { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true }
}

/** Writes a `traceparent`. Returns undefined for a span without a valid id, as a disabled SDK makes them. */
function formatTraceparent({ traceId, spanId, traceFlags }: TraceParent): string | undefined {
  const text = `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`
  return parseTraceparent(text) && text
}

/** The `traceparent` of the HTTP request that is being answered. */
export const incomingTraceparent: {
  getStore(): string | undefined
  run<T>(traceparent: string, work: () => T): T
} = new AsyncLocalStorage<string>()

/**
 * Runs the code that answers a request. Messages that this code queues are stored with the request's
 * `traceparent`, so that the session they begin belongs to the caller's trace, even after a restart.
 */
export function withTraceparent<T>(header: string | null, work: () => T): T {
  return header !== null && parseTraceparent(header)
    ? incomingTraceparent.run(header, work)
    : work()
}
