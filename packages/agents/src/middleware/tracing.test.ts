import { context as otelContext, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api'
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base'
import { manualClock } from '@skein/base'
import { calls, fails, says, scripted } from '@skein/ai/testing'
import { describe, expect, test } from 'vitest'
import { memoryCheckpoints } from '../checkpoint/index.ts'
import { agent, AgentState } from '../index.ts'
import { tracing } from './index.ts'
import type { TracingOptions } from './tracing.ts'
import type { Middleware } from '../contract/agent-types.ts'

const exporter = new InMemorySpanExporter()
const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] })
const tracer = provider.getTracer('test')
const now = {
  name: 'now',
  description: 'Tells the time.',
  parameters: { type: 'object' },
  run: () => 'noon',
}

describe.each([{ streaming: false }, { streaming: true }])(
  'streaming: $streaming',
  ({ streaming }) => {
    async function run(
      options: Partial<TracingOptions> = {},
      script = [calls('now'), says('Noon.')],
    ) {
      exporter.reset()
      const clock = manualClock(1_700_000_000_000)
      const slow: Middleware = { name: 'slow', before: () => clock.advance(40) }
      const coder = agent({
        model: scripted(script),
        tools: [now],
        middleware: [tracing({ tracer, clock, ...options }), slow],
        checkpoints: memoryCheckpoints(),
        sessionId: 's',
      })
      const state = AgentState.initial()
      const result = streaming
        ? coder.stream('Time?', state).result
        : coder.generate('Time?', state)
      await result.catch(() => {})
      return { coder, spans: exporter.getFinishedSpans() }
    }

    test('a run is one invoke_agent span with usage, session and how it ended', async () => {
      const { coder, spans } = await run({ name: 'clock', attributes: { team: 'time' } })
      expect(spans.map(({ name, kind }) => [name, kind])).toEqual([
        ['invoke_agent clock', SpanKind.INTERNAL],
      ])
      expect(spans[0]?.attributes).toEqual({
        team: 'time',
        'gen_ai.operation.name': 'invoke_agent',
        'gen_ai.agent.id': coder.id,
        'gen_ai.agent.name': 'clock',
        'gen_ai.provider.name': 'scripted',
        'gen_ai.request.model': 'script',
        'gen_ai.conversation.id': 's',
        'gen_ai.usage.input_tokens': expect.any(Number),
        'gen_ai.usage.output_tokens': expect.any(Number),
        'gen_ai.usage.cache_read.input_tokens': 0,
        'gen_ai.usage.cache_creation.input_tokens': 0,
        'gen_ai.response.finish_reasons': ['end_turn'],
        'skein.agent.steps': 2,
        'skein.agent.stop_reason': 'complete',
      })
      expect(spans[0]?.duration).toEqual([0, 40_000_000])
      expect(JSON.stringify(spans[0]?.attributes)).not.toMatch(/Time|Noon/)
    })

    test('content is captured only on request', async () => {
      const { spans } = await run({ captureContent: true })
      expect(spans[0]?.name).toBe('invoke_agent')
      expect(spans[0]?.attributes['gen_ai.input.messages']).toContain('Time?')
      expect(spans[0]?.attributes['gen_ai.output.messages']).toMatch(/now.*noon.*Noon/)
      expect(spans[0]?.attributes['gen_ai.output.messages']).not.toContain('Time?')
    })

    test('a failed run ends its span with an error', async () => {
      const { spans } = await run({}, [fails({ message: 'no more', code: 'QUOTA_EXCEEDED' })])
      expect(spans[0]?.status).toEqual({ code: SpanStatusCode.ERROR, message: 'no more' })
      expect(spans[0]?.attributes['error.type']).toBe('QUOTA_EXCEEDED')
    })

    test('the parent can be chosen', async () => {
      const parent = tracer.startSpan('request')
      const { spans } = await run({ context: () => trace.setSpan(otelContext.active(), parent) })
      expect(spans[0]?.parentSpanContext?.spanId).toBe(parent.spanContext().spanId)
    })
  },
)

test('runs side by side have a span each', async () => {
  exporter.reset()
  const coder = agent({ model: scripted(() => says('hi')), middleware: [tracing({ tracer })] })
  await Promise.all([coder.query('a'), coder.query('b'), coder.query('c')])
  expect(new Set(exporter.getFinishedSpans().map((span) => span.spanContext().spanId)).size).toBe(3)
})
