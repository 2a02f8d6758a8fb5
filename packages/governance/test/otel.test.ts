import * as api from '@opentelemetry/api'
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base'
import { expect, test } from 'vitest'
import { exportSpans, otelEvents, type OtelApi } from '../src/adapters/otel.ts'
import type { Run } from '../src/index.ts'
import { identity, openBank, type Bank } from './bank.ts'

const exporter = new InMemorySpanExporter()
const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] })
const tracer = provider.getTracer('test')
const otel = api as unknown as OtelApi<api.Context>

function body(bank: Bank): (run: Run) => Promise<string> {
  const find = (name: string) => bank.tools.find((tool) => tool.name === name)!
  return async (run) => {
    await run.call(find('ledger'), { account: 'A-1' } as never)
    await run.call(find('note'), { text: 'canary-secret' } as never)
    await run.call(find('broken'), { x: '' } as never).catch(() => undefined)
    return 'done'
  }
}

test('a journal becomes spans of the GenAI conventions, by the real SDK', async () => {
  exporter.reset()
  const bank = await openBank()
  await bank.governor.run(bank.task, { identity, input: null }, body(bank))
  await exportSpans(bank.log.read(), { api: otel, tracer: tracer as never })
  const spans = exporter.getFinishedSpans()
  const root = spans.find(({ name }) => name === 'invoke_agent agent-1')!
  const tools = spans.filter(({ name }) => name.startsWith('execute_tool'))
  expect(tools.map(({ name }) => name)).toEqual([
    'execute_tool ledger',
    'execute_tool note',
    'execute_tool broken',
  ])
  for (const tool of tools) expect(tool.parentSpanContext?.spanId).toBe(root.spanContext().spanId)
  expect(tools[1]!.attributes).toMatchObject({
    'gen_ai.operation.name': 'execute_tool',
    'gen_ai.tool.name': 'note',
    'uaicp.risk': 'write_low_risk',
    'uaicp.effect': 'applied',
  })
  expect(tools[2]!.status.code).toBe(api.SpanStatusCode.ERROR)
  expect(tools[2]!.attributes['uaicp.reasons']).toEqual(['TOOL_ERROR'])
  expect(root.events.map(({ name }) => name)).toContain('uaicp.delivered')
  expect(
    JSON.stringify(spans.map(({ attributes, events }) => ({ attributes, events }))),
  ).not.toContain('canary-secret')
})

test('children stand below their parents, and a failed run is an error', async () => {
  exporter.reset()
  const bank = await openBank()
  await bank.governor.run(bank.task, { identity, input: null }, async (run) =>
    run.child(bank.task, {}, async () => 'nothing'),
  )
  await exportSpans(bank.log.read(), { api: otel, tracer: tracer as never })
  const [parent, child] = exporter.getFinishedSpans()
  expect(child!.parentSpanContext?.spanId).toBe(parent!.spanContext().spanId)
  expect(parent!.status).toMatchObject({ code: api.SpanStatusCode.ERROR })
  expect(parent!.status.message).toContain('CHILD_FAIL_SAFE')
})

test('live entries become events of the active span, and none without one', async () => {
  exporter.reset()
  const span = tracer.startSpan('around')
  let active: api.Span | undefined = span
  const around = { ...otel, trace: { ...otel.trace, getActiveSpan: () => active as never } }
  const bank = await openBank({ observe: otelEvents(around) })
  await bank.governor.run(bank.task, { identity, input: null }, body(bank))
  active = undefined
  await bank.governor.run(bank.task, { identity, input: null }, body(bank))
  span.end()
  const [around1] = exporter.getFinishedSpans()
  expect(around1!.events.map(({ name }) => name)).toEqual(
    bank.log.lines
      .slice(0, bank.log.lines.length / 2)
      .map(
        (line) =>
          `uaicp.${(JSON.parse(line) as { metadata: Record<string, string> }).metadata['uaicp:event']}`,
      ),
  )
})

test('UAICP-27 spans say who did what, in which request, attempt and state, and from when to when', async () => {
  exporter.reset()
  let now = Date.UTC(2026, 0, 1)
  const bank = await openBank({ clock: { now: () => (now += 1000) } })
  await bank.governor.run(bank.task, { identity, input: null }, body(bank))
  await exportSpans(bank.log.read(), { api: otel, tracer: tracer as never })
  const entries = bank.log.lines.map(
    (line) =>
      JSON.parse(line) as {
        request_id: string
        trace_id: string
        timestamp: string
        metadata: { 'uaicp:event': string; 'uaicp:seq': number }
      },
  )
  const timeOf = (type: string, tool: string): number => {
    const line = bank.log.lines.find((one) => one.includes(`"${type}"`) && one.includes(tool))
    return Date.parse((JSON.parse(line!) as { timestamp: string }).timestamp) / 1000
  }
  const [first, last] = [entries[0]!, entries.at(-1)!]
  const spans = exporter.getFinishedSpans()
  const root = spans.find(({ name }) => name === 'invoke_agent agent-1')!
  expect(root.attributes).toEqual({
    'gen_ai.operation.name': 'invoke_agent',
    'gen_ai.agent.id': 'agent-1',
    'uaicp.task': bank.task.name,
    'uaicp.request_id': first.request_id,
    'uaicp.trace_id': first.trace_id,
  })
  expect(root.kind).toBe(api.SpanKind.INTERNAL)
  expect(root.startTime[0]).toBe(Date.parse(first.timestamp) / 1000)
  expect(root.endTime[0]).toBe(Date.parse(last.timestamp) / 1000)
  expect(root.status.code).toBe(api.SpanStatusCode.UNSET)
  const delivered = root.events.find(({ name }) => name === 'uaicp.delivered')!
  expect(delivered.time[0]).toBe(Date.parse(last.timestamp) / 1000)
  expect(delivered.attributes).toEqual({
    'uaicp.request_id': first.request_id,
    'uaicp.seq': entries.length - 1,
    'uaicp.attempt': 1,
    'uaicp.state': 'deliver',
    'uaicp.outcome': 'success',
    'uaicp.actor.type': 'system',
  })
  // A call is a span of its own and no event of the request.
  expect(root.events.map(({ name }) => name)).not.toContain('uaicp.call_settled')
  const [ledger, note, broken] = spans.filter(({ name }) => name.startsWith('execute_tool'))
  expect(note!.attributes).toMatchObject({
    'gen_ai.tool.call.id': '1.2',
    'uaicp.call': '1.2',
    'uaicp.tool': 'note',
    'uaicp.actor.type': 'agent',
    'uaicp.outcome': 'success',
    'uaicp.state': 'execute',
  })
  expect(note!.attributes).not.toHaveProperty('uaicp.reasons')
  expect(note!.startTime[0]).toBe(timeOf('call_started', 'note'))
  expect(note!.endTime[0]).toBe(timeOf('call_settled', 'note'))
  expect(ledger!.startTime).toEqual(ledger!.endTime)
  expect(ledger!.startTime[0]).toBe(timeOf('call_settled', 'ledger'))
  expect([ledger, note, broken].map((span) => span!.status.code)).toEqual([
    api.SpanStatusCode.UNSET,
    api.SpanStatusCode.UNSET,
    api.SpanStatusCode.ERROR,
  ])
})

test('UAICP-27 answers, undoings and verdicts are named in the events of a request', async () => {
  exporter.reset()
  const bank = await openBank()
  const reverse = bank.tools.find(({ name }) => name === 'reverse')!
  const deny = async () => ({ type: 'deny', reason: 'no' }) as const
  await bank.governor.run(bank.task, { identity, input: null, approve: deny }, async (run) => {
    await run.call(reverse, { wire: 'W-1' } as never).catch(() => undefined)
    await run.call(
      bank.tools.find(({ name }) => name === 'note')!,
      { text: 'x' } as never,
    )
    throw new Error('over')
  })
  await exportSpans(bank.log.read(), { api: otel, tracer: tracer as never })
  const root = exporter.getFinishedSpans().find(({ name }) => name === 'invoke_agent agent-1')!
  const attributesOf = (type: string) =>
    root.events.find(({ name }) => name === `uaicp.${type}`)?.attributes
  expect(attributesOf('review_answered')).toMatchObject({
    'uaicp.answer': 'denied',
    'uaicp.actor.type': 'human',
    'uaicp.reasons': ['APPROVAL_DENIED'],
  })
  expect(attributesOf('undo_settled')).toMatchObject({ 'uaicp.status': 'done' })
  expect(root.status).toMatchObject({ code: api.SpanStatusCode.ERROR })
})
