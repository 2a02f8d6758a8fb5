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
