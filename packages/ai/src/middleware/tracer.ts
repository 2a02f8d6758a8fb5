/** What `telemetryMiddleware` needs of a tracer: any of `@opentelemetry/api` will do. */
export interface Tracer {
  startSpan(name: string, options?: SpanOptions, context?: unknown): Span
}

export interface SpanOptions {
  /** OpenTelemetry's numbers: 0 internal, 2 client. */
  readonly kind?: number
  readonly attributes?: SpanAttributes
  readonly startTime?: Date
}

export type SpanAttributeValue = string | number | boolean | string[]
export type SpanAttributes = Record<string, SpanAttributeValue>

export interface Span {
  setAttributes(attributes: SpanAttributes): unknown
  /** OpenTelemetry's numbers: 2 is an error. */
  setStatus(status: { code: number; message?: string }): unknown
  end(endTime?: Date): void
}
