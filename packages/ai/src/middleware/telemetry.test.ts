import { context as otelContext, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api'
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
  type ReadableSpan,
} from '@opentelemetry/sdk-trace-base'
import * as semconv from '@opentelemetry/semantic-conventions/incubating'
import { manualClock } from '@skein/base'
import { describe, expect, test } from 'vitest'
import { embedding } from '../embedding.ts'
import { llm, type LLMOptions } from '../llm.ts'
import { createProvider } from '../contract/provider.ts'
import { fallback } from '../routing/fallback.ts'
import { calls, fails, reasons, says, scripted, stops, waits } from '../testing/index.ts'
import { defer } from '../contract/tool.ts'
import { telemetryMiddleware, type TelemetryOptions } from './telemetry.ts'

function setup(options: Partial<TelemetryOptions> = {}) {
  const exporter = new InMemorySpanExporter()
  const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] })
  const tracer = provider.getTracer('test')
  const middleware = [telemetryMiddleware({ tracer, ...options })]
  return { middleware, tracer, spans: () => exporter.getFinishedSpans() }
}

const known = new Set<unknown>(Object.values(semconv))
const ms = ([seconds, nanos]: ReadableSpan['startTime']): number => seconds * 1000 + nanos / 1e6
const now = {
  name: 'now',
  description: 'Tells the time.',
  parameters: { type: 'object' },
  run: (): unknown => 'noon',
}

const script = () =>
  scripted(
    [
      calls('now', { zone: 'UTC' }),
      [
        reasons('Hm.'),
        says('It is noon.'),
        stops('end_turn', {
          usage: { inputTokens: 20, outputTokens: 5, cacheReadTokens: 8, cacheWriteTokens: 4 },
        }),
      ],
    ],
    { provider: 'google', modelId: 'gemini' },
  )

describe.each([{ streaming: true }, { streaming: false }])(
  'streaming: $streaming',
  ({ streaming }) => {
    async function run(options: Partial<LLMOptions>, telemetry: Partial<TelemetryOptions> = {}) {
      const { middleware, spans } = setup(telemetry)
      const clock = manualClock(1_700_000_000_000)
      const instance = llm({ model: script(), middleware, clock, ...options })
      const turn = streaming ? instance.stream('Time?').turn : instance.generate('Time?')
      await turn.catch(() => {})
      return spans()
    }

    test('an inference is a chat span, a tool run an execute_tool span', async () => {
      const config = { baseUrl: 'http://127.0.0.1:8080/v1' }
      const params = {
        max_tokens: 99,
        generationConfig: { temperature: 0.5, stopSequences: ['.'] },
      }
      const spans = await run({ tools: [now], config, params })
      expect(spans.map(({ name, kind }) => [name, kind])).toEqual([
        ['chat gemini', SpanKind.CLIENT],
        ['execute_tool now', SpanKind.INTERNAL],
        ['chat gemini', SpanKind.CLIENT],
      ])
      expect(spans[2]?.attributes).toEqual({
        'gen_ai.operation.name': 'chat',
        'gen_ai.provider.name': 'gcp.gemini',
        'gen_ai.request.model': 'gemini',
        ...(streaming && {
          'gen_ai.request.stream': true,
          'gen_ai.response.time_to_first_chunk': 0,
        }),
        'gen_ai.request.max_tokens': 99,
        'gen_ai.request.temperature': 0.5,
        'gen_ai.request.stop_sequences': ['.'],
        'server.address': '127.0.0.1',
        'server.port': 8080,
        'gen_ai.response.model': 'gemini',
        'gen_ai.response.id': 'response_2',
        'gen_ai.response.finish_reasons': ['end_turn'],
        'gen_ai.usage.input_tokens': 20,
        'gen_ai.usage.output_tokens': 5,
        'gen_ai.usage.cache_read.input_tokens': 8,
        'gen_ai.usage.cache_creation.input_tokens': 4,
      })
      expect(spans[1]?.attributes).toEqual({
        'gen_ai.operation.name': 'execute_tool',
        'gen_ai.tool.name': 'now',
        'gen_ai.tool.call.id': 'call_1',
        'gen_ai.tool.type': 'function',
        'gen_ai.tool.description': 'Tells the time.',
      })
      expect(spans.map(({ status }) => status.code)).toEqual([0, 0, 0])
    })

    test('every attribute is one of the conventions', async () => {
      const spans = await run({ tools: [now], system: 'Be brief.' }, { captureContent: true })
      const names = spans.flatMap(({ attributes }) => Object.keys(attributes))
      expect(names.filter((name) => !known.has(name))).toEqual([])
    })

    test('content is captured only on demand', async () => {
      const secretTool = { ...now, run: () => ({ time: 'noon-canary' }) }
      const plain = await run({ tools: [secretTool], system: 'system-canary' })
      expect(JSON.stringify(plain.map(({ attributes }) => attributes))).not.toMatch(/canary|Time\?/)
      const [first, tool, last] = await run(
        { tools: [secretTool], system: 'Be brief.' },
        { captureContent: true },
      )
      const json = (span: ReadableSpan | undefined, name: string): unknown =>
        JSON.parse(String(span?.attributes[name]))
      expect(json(first, 'gen_ai.system_instructions')).toEqual([
        { type: 'text', content: 'Be brief.' },
      ])
      expect(json(first, 'gen_ai.tool.definitions')).toMatchObject([
        { type: 'function', name: 'now' },
      ])
      expect(json(tool, 'gen_ai.tool.call.arguments')).toEqual({ zone: 'UTC' })
      expect(json(tool, 'gen_ai.tool.call.result')).toEqual({ time: 'noon-canary' })
      const call = { type: 'tool_call', id: 'call_1', name: 'now', arguments: { zone: 'UTC' } }
      expect(json(last, 'gen_ai.input.messages')).toEqual([
        { role: 'user', parts: [{ type: 'text', content: 'Time?' }] },
        { role: 'assistant', parts: [call] },
        {
          role: 'tool',
          parts: [{ type: 'tool_call_response', id: 'call_1', response: '{"time":"noon-canary"}' }],
        },
      ])
      expect(json(last, 'gen_ai.output.messages')).toEqual([
        {
          role: 'assistant',
          parts: [
            { type: 'reasoning', content: 'Hm.' },
            { type: 'text', content: 'It is noon.' },
          ],
          finish_reason: 'stop',
        },
      ])
    })

    test('a failed inference says which error it was', async () => {
      const model = scripted([fails({ code: 'RATE_LIMITED', message: 'Slow down.' })])
      const [span, ...rest] = await run({ model })
      expect(rest).toEqual([])
      expect(span?.status).toEqual({ code: SpanStatusCode.ERROR, message: 'Slow down.' })
      expect(span?.attributes['error.type']).toBe('RATE_LIMITED')
    })

    test('a failed tool is a failed span, without its words unless asked for', async () => {
      const broken = {
        ...now,
        run: () => {
          throw new RangeError('private words')
        },
      }
      const [, quiet] = await run({ tools: [broken] })
      expect(quiet?.status).toEqual({ code: SpanStatusCode.ERROR })
      expect(quiet?.attributes['error.type']).toBe('RangeError')
      const [, loud] = await run({ tools: [broken] }, { captureContent: true })
      expect(loud?.status.message).toBe('private words')
    })

    test('a tool that has ended stays so when its turn fails later', async () => {
      const model = scripted([calls('now', {}), fails()])
      const spans = await run({ model, tools: [now] })
      expect(spans.map(({ name, status }) => [name, status.code])).toEqual([
        ['chat script', 0],
        ['execute_tool now', 0],
        ['chat script', SpanStatusCode.ERROR],
      ])
    })

    test('a deferred call has no span', async () => {
      const later = { ...now, run: () => defer({ kind: 'input', request: null }) }
      expect((await run({ tools: [later] })).map(({ name }) => name)).toEqual(['chat gemini'])
    })
  },
)

test('an abort ends the open spans, also of a model and a tool that do not listen', async () => {
  const { middleware, spans } = setup()
  const deaf = { ...now, run: () => new Promise(() => {}) }
  const stream = llm({ model: scripted([calls('now', {})]), middleware, tools: [deaf] }).stream(
    'Hi',
  )
  for await (const event of stream) if (event.type === 'tool_execution_start') break
  await expect(stream.turn).rejects.toMatchObject({ code: 'CANCELLED' })
  expect(spans().map(({ name, attributes }) => [name, attributes['error.type']])).toEqual([
    ['chat script', undefined],
    ['execute_tool now', 'CANCELLED'],
  ])

  const waiting = llm({ model: scripted([waits(Infinity)]), middleware }).stream('Hi')
  setTimeout(() => waiting.abort(), 5)
  await expect(waiting.turn).rejects.toThrow()
  expect(spans()[2]?.attributes['error.type']).toBe('CANCELLED')
})

test('times are those of the clock', async () => {
  const { middleware, spans } = setup()
  const clock = manualClock(1_700_000_000_000)
  const slow = { ...now, run: () => clock.advance(250) }
  await llm({ model: script(), middleware, clock, tools: [slow] }).generate('Time?')
  const [, tool] = spans()
  expect(ms(tool!.startTime)).toBe(1_700_000_000_000)
  expect(ms(tool!.endTime)).toBe(1_700_000_000_250)
})

test('spans have the parent and the attributes that were given', async () => {
  const outer = setup()
  const parent = outer.tracer.startSpan('parent')
  const context = () => trace.setSpan(otelContext.active(), parent)
  const attributes = { 'gen_ai.conversation.id': 'c1' }
  const { middleware, spans } = setup({ context, attributes })
  await llm({ model: script(), middleware, tools: [now] }).generate('Time?')
  for (const span of spans()) {
    expect(span.parentSpanContext?.spanId).toBe(parent.spanContext().spanId)
    expect(span.attributes['gen_ai.conversation.id']).toBe('c1')
  }
  expect(spans()).toHaveLength(3)
})

test('behind a fallback, the span names who answered', async () => {
  const { middleware, spans } = setup()
  const two = scripted([says('x')], { provider: 'mistral', modelId: 'b' })
  await llm({ model: fallback([scripted([fails()]), two]), middleware }).generate('Hi')
  expect(spans()[0]?.attributes).toMatchObject({
    'gen_ai.provider.name': 'mistral_ai',
    'gen_ai.response.model': 'b',
  })
})

test('embeddings have one span, failed or not', async () => {
  const { middleware, spans } = setup()
  let isDown = false
  const provider = createProvider({
    name: 'vectors',
    embedding: {
      maxBatchSize: 1,
      imageInput: false,
      bind: ({ modelId }) => ({
        modelId,
        provider: 'vectors',
        async embed() {
          if (isDown) throw new Error('down')
          return {
            embeddings: [{ vector: [1, 2], dimensions: 2, index: 0 }],
            usage: { totalTokens: 3 },
          }
        },
      }),
    },
  })
  const embedder = embedding({ model: provider('m'), middleware })
  await embedder.embed(['a', 'b'])
  isDown = true
  await expect(embedder.embed('a')).rejects.toThrow()
  const [good, bad, ...rest] = spans()
  expect(rest).toEqual([])
  expect(good?.name).toBe('embeddings m')
  expect(good?.attributes).toMatchObject({
    'gen_ai.operation.name': 'embeddings',
    'gen_ai.usage.input_tokens': 6,
    'gen_ai.embeddings.dimension.count': 2,
  })
  expect(bad?.attributes['error.type']).toBe('PROVIDER_ERROR')
})
