/**
 * The spans and metrics of a runtime, with the SDK of OpenTelemetry: a session, its turn, its inferences, its
 * call, and a span of the tool's own beneath the call. The caller's span is the parent of the session.
 *
 * Prints:
 *
 *     checkout
 *       invoke_agent shop
 *         skein.turn
 *           chat script
 *           execute_tool stock
 *             SELECT stock
 *           chat script
 *     gen_ai.client.token.usage: 4
 *     skein.turn.duration: 1
 *     skein.failures: none
 */

// #region program
import * as api from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics'
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base'
import { calls, says, scripted } from '@skein/ai/testing'
import { createRuntime, defineAgent, defineTool } from '@skein/runtime'
import { z } from 'zod'

// A program of yours sets up exporters that send; these keep everything in memory.
const spans = new InMemorySpanExporter()
const metrics = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE)
const reader = new PeriodicExportingMetricReader({ exporter: metrics })
api.context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
api.trace.setGlobalTracerProvider(
  new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spans)] }),
)
api.metrics.setGlobalMeterProvider(new MeterProvider({ readers: [reader] }))
const tracer = api.trace.getTracer('shop')

const stock = defineTool({
  name: 'stock',
  description: 'How many are left.',
  args: z.object({ item: z.string() }),
  risk: 'read_only',
  execute: async () => tracer.startActiveSpan('SELECT stock', async (span) => (span.end(), 3)),
})
const model = scripted([calls('stock', { item: 'tea' }), says('Three are left.')])
const shop = defineAgent({ name: 'shop', instructions: 'You sell tea.', model, tools: [stock] })

const runtime = await createRuntime({ agents: [shop], telemetry: { api } })
await runtime.start()
await tracer.startActiveSpan('checkout', async (span) => {
  const thread = await runtime.threads.create({ agent: 'shop' })
  await runtime.threads.run(thread.id, 'Is there any tea?')
  span.end()
})
await runtime.stop()

const print = (parent: string | undefined, indent: string): void => {
  for (const span of spans.getFinishedSpans().toSorted(byStart)) {
    if (span.parentSpanContext?.spanId !== parent || span.name === 'skein.commit') continue
    console.log(`${indent}${span.name}`)
    print(span.spanContext().spanId, `${indent}  `)
  }
}
const byStart = (a: { startTime: number[] }, b: { startTime: number[] }): number =>
  a.startTime[0]! - b.startTime[0]! || a.startTime[1]! - b.startTime[1]!
print(undefined, '')
await reader.forceFlush()
const found = metrics.getMetrics().flatMap(({ scopeMetrics }) => scopeMetrics[0]!.metrics)
for (const name of ['gen_ai.client.token.usage', 'skein.turn.duration', 'skein.failures']) {
  const points = found.find(({ descriptor }) => descriptor.name === name)?.dataPoints ?? []
  const counts = points.map(({ value }) => (typeof value === 'number' ? value : (value.count ?? 0)))
  const count = counts.reduce((sum, one) => Number(sum) + Number(one), 0)
  console.log(`${name}: ${points.length === 0 ? 'none' : String(count)}`)
}
await reader.shutdown()
// #endregion program
