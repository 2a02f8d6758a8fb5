import type { JournalRecord } from '../journal/journal.ts'
import { readItem } from '../journal/read-item.ts'
import type { JournalItem } from '../journal/events.ts'
import type { Reason } from '../contract/reason.ts'

type Attributes = Record<string, string | number | boolean | string[]>

interface OtelSpan {
  addEvent(name: string, attributes?: Attributes, time?: number): unknown
  setStatus(status: { code: number; message?: string }): unknown
  setAttributes(attributes: Attributes): unknown
  end(time?: number): void
}

/** The part of `@opentelemetry/api` that is used here. */
export interface OtelApi<Context> {
  readonly trace: {
    getActiveSpan(): OtelSpan | undefined
    setSpan(context: Context, span: never): Context
  }
  readonly context: { active(): Context }
}

/** A tracer of `@opentelemetry/api`. */
interface OtelTracer<Context> {
  startSpan(
    name: string,
    options: { kind?: number; startTime?: number; attributes?: Attributes },
    context?: Context,
  ): OtelSpan
}

/**
 * Returns a callback for `governor({ observe })` that adds each journal entry as an event to the active
 * span, which also has the telemetry of models and agents. Telemetry may be lost, so use the audit log as
 * the reliable record.
 */
export function otelEvents<Context>(api: OtelApi<Context>): (item: JournalItem) => void {
  return (item) => {
    api.trace.getActiveSpan()?.addEvent(`uaicp.${item.type}`, attributesOf(item))
  }
}

/**
 * Converts a journal into spans afterwards: `invoke_agent` for each request, `execute_tool` for each call
 * that ran, and events for everything else. The span of a child request is inside its parent's span.
 */
export async function exportSpans<Context>(
  records: AsyncIterable<JournalRecord>,
  { api, tracer }: { readonly api: OtelApi<Context>; readonly tracer: OtelTracer<Context> },
): Promise<void> {
  const requests = new Map<string, RequestSpans<Context>>()
  for await (const record of records) {
    const item = readItem(record)
    const spans = requests.get(item.request_id)
    if (item.type === 'opened') {
      const parent = item.data.parent === undefined ? undefined : requests.get(item.data.parent)
      requests.set(item.request_id, openSpans({ api, tracer }, item, record, parent))
    }
    if (item.type === 'opened' || !spans) continue
    spans.last = item.at
    if (item.type === 'call_started') spans.started.set(item.data.call, item.at)
    if (item.type === 'call_settled') {
      endCall(spans, item, tracer)
      continue
    }
    spans.span.addEvent(`uaicp.${item.type}`, attributesOf(item), item.at)
    if (item.type !== 'failed_safe') continue
    spans.span.setStatus({ code: STATUS_ERROR, message: codesOf(item.data.reasons).join(', ') })
  }
  for (const { span, last } of requests.values()) span.end(last)
}

interface RequestSpans<Context> {
  readonly span: OtelSpan
  readonly context: Context
  /** The start times of calls, by call id. */
  readonly started: Map<string, number>
  last: number
}

const KIND_INTERNAL = 0
const STATUS_ERROR = 2

function openSpans<Context>(
  { api, tracer }: { readonly api: OtelApi<Context>; readonly tracer: OtelTracer<Context> },
  item: JournalItem & { readonly type: 'opened' },
  { envelope }: JournalRecord,
  parent: RequestSpans<Context> | undefined,
): RequestSpans<Context> {
  const around = parent?.context ?? api.context.active()
  const span = tracer.startSpan(
    `invoke_agent ${envelope.identity.agent_id}`,
    {
      kind: KIND_INTERNAL,
      startTime: item.at,
      attributes: {
        'gen_ai.operation.name': 'invoke_agent',
        'gen_ai.agent.id': envelope.identity.agent_id,
        'uaicp.task': item.data.task,
        'uaicp.request_id': item.request_id,
        'uaicp.trace_id': item.trace_id,
      },
    },
    around,
  )
  const context = api.trace.setSpan(around, span as never)
  return { span, context, started: new Map(), last: item.at }
}

function endCall<Context>(
  { context, started }: RequestSpans<Context>,
  item: JournalItem & { readonly type: 'call_settled' },
  tracer: OtelTracer<Context>,
): void {
  const { call, tool } = item.data
  const attributes = {
    'gen_ai.operation.name': 'execute_tool',
    'gen_ai.tool.name': tool,
    'gen_ai.tool.call.id': call,
    ...attributesOf(item),
  }
  // A read-only call has only one journal entry, at its end, so its span has no duration.
  const startTime = started.get(call) ?? item.at
  const options = { kind: KIND_INTERNAL, startTime, attributes }
  const span = tracer.startSpan(`execute_tool ${tool}`, options, context)
  if (item.outcome !== 'success') span.setStatus({ code: STATUS_ERROR })
  span.end(item.at)
}

/**
 * Returns the attributes of an entry: names, numbers and reason codes. Arguments and results are never
 * included; the log does not contain them either.
 */
function attributesOf(item: JournalItem): Attributes {
  const data = item.data as {
    readonly tool?: string
    readonly call?: string
    readonly risk?: string
    readonly answer?: string
    readonly effect?: string
    readonly status?: string
    readonly verifier?: string
    readonly reasons?: readonly Reason[]
  }
  const attributes: Attributes = {
    'uaicp.request_id': item.request_id,
    'uaicp.seq': item.seq,
    'uaicp.attempt': item.attempt,
    'uaicp.state': item.state,
    'uaicp.outcome': item.outcome,
    'uaicp.actor.type': item.actor.type,
  }
  for (const name of ['tool', 'call', 'risk', 'answer', 'effect', 'status', 'verifier'] as const) {
    const value = data[name]
    if (value !== undefined) attributes[`uaicp.${name}`] = value
  }
  if (data.reasons && data.reasons.length > 0) attributes['uaicp.reasons'] = codesOf(data.reasons)
  return attributes
}

function codesOf(reasons: readonly Reason[]): string[] {
  return reasons.map(({ code }) => code)
}
