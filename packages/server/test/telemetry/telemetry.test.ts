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
  type ReadableSpan,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base'
import fc from 'fast-check'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { calls, fails, says, scripted } from '@skein/ai/testing'
import { manualClock } from '@skein/base'
import { z } from 'zod'
import {
  defineAgent,
  defineEffect,
  definePrompt,
  defineTool,
  createRuntime,
  type EmbeddedRuntime,
  type RuntimeOptions,
  memoryStore,
  type Store,
} from '@skein/runtime'
import { foldKernel } from '../../../runtime/src/state/fold.ts'
import { createHttp } from '../../src/http/create-http.ts'
import { manualTimers } from '@skein/runtime/testing'
import { parseTraceparent } from '../../../runtime/src/telemetry/telemetry.ts'

const START = Date.UTC(2026, 0, 1)
const exporter = new InMemorySpanExporter()
const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] })
const metricExporter = new InMemoryMetricExporter(AggregationTemporality.DELTA)
const reader = new PeriodicExportingMetricReader({ exporter: metricExporter })
const meterProvider = new MeterProvider({ readers: [reader] })

beforeAll(() => {
  api.context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
  api.trace.setGlobalTracerProvider(provider)
  api.metrics.setGlobalMeterProvider(meterProvider)
})
afterEach(async () => {
  await reader.forceFlush()
  metricExporter.reset()
  exporter.reset()
})
afterAll(() => {
  for (const part of [api.context, api.trace, api.metrics]) part.disable()
})

/** One process: a runtime on a store that outlives it. */
async function boot(options: Partial<RuntimeOptions> & { store?: Store; at?: number } = {}) {
  const { store = memoryStore(), at = START, ...rest } = options
  const clock = manualClock(at)
  const timers = manualTimers(clock)
  const errors: unknown[] = []
  const lasting = new Proxy(store, {
    get(target, name) {
      if (name === 'close') return async () => {}
      const member: unknown = Reflect.get(target, name)
      return typeof member === 'function' ? member.bind(target) : member
    },
  })
  const runtime = await createRuntime({
    clock,
    timers,
    store: lasting,
    telemetry: { api },
    onError: (error) => void errors.push(error),
    ...rest,
  })
  await runtime.start()
  return { runtime, timers, clock, errors, store }
}

const span = (name: string): ReadableSpan[] =>
  exporter.getFinishedSpans().filter((one) => one.name === name)
const one = (name: string): ReadableSpan => {
  const [first, ...more] = span(name)
  if (!first || more.length > 0) throw new Error(`${1 + more.length} spans are named ${name}`)
  return first
}
const idOf = (found: ReadableSpan): string => found.spanContext().spanId
const parentOf = (found: ReadableSpan): string | undefined => found.parentSpanContext?.spanId
const ms = ([seconds, nanos]: [number, number]): number => seconds * 1000 + nanos / 1e6

/** The spans as a tree of names; commits are left out. */
function tree(parent?: string): unknown {
  const found = exporter.getFinishedSpans().filter((item) => item.name !== 'skein.commit')
  const known = new Set(found.map(idOf))
  const isBeneath = (item: ReadableSpan): boolean =>
    parent === undefined ? !known.has(parentOf(item) ?? '') : parentOf(item) === parent
  return Object.fromEntries(found.filter(isBeneath).map((item) => [item.name, tree(idOf(item))]))
}

async function metrics(): Promise<Map<string, { attributes: object; value: unknown }[]>> {
  await reader.forceFlush()
  const all = new Map<string, { attributes: object; value: unknown }[]>()
  for (const { scopeMetrics } of metricExporter.getMetrics())
    for (const { descriptor, dataPoints } of scopeMetrics.flatMap((scope) => scope.metrics))
      all.set(descriptor.name, [
        ...(all.get(descriptor.name) ?? []),
        ...dataPoints.map(({ attributes, value }) => ({ attributes, value })),
      ])
  return all
}

const look = defineTool({
  name: 'look',
  description: 'Looks.',
  args: z.object({}),
  risk: 'read_only',
  execute: async () => {
    await new Promise((resolve) => setImmediate(resolve))
    api.trace.getTracer('mine').startSpan('query').end()
    return 'seen'
  },
})

function lookingAgent() {
  const model = scripted([calls('look', {}), says('Seen.')])
  return defineAgent({
    name: 'desk',
    sideA: { prompt: definePrompt({ name: 'desk', prompt: 'Look.', model, tools: [look] }) },
  })
}

test('a session, its turn, inferences, calls and the spans of user code are one tree', async () => {
  const { runtime, errors } = await boot({ agents: [lookingAgent()] })
  const thread = await runtime.threads.create({ agent: 'desk', tenant: 'acme' })
  await runtime.threads.run(thread.id, 'Look.')
  await runtime.stop()
  expect(errors).toEqual([])
  expect(tree()).toEqual({
    'invoke_agent desk': {
      'skein.turn': { 'chat script': {}, 'execute_tool look': { query: {} } },
    },
  })
  expect(span('chat script')).toHaveLength(2)
  expect(one('invoke_agent desk').attributes).toMatchObject({
    'gen_ai.operation.name': 'invoke_agent',
    'gen_ai.agent.name': 'desk',
    'gen_ai.conversation.id': thread.id,
    'skein.session.state': 'completed',
    'skein.tenant': 'acme',
  })
  expect(one('execute_tool look').attributes).toMatchObject({ 'gen_ai.tool.name': 'look' })
  const points = span('skein.commit').map(({ attributes }) => attributes['skein.commit.point'])
  const ended = 'answer+session_end+park'
  expect(points).toEqual(['session_start', 'answer+call_start', 'call_end+step_end', ended])
  const turn = idOf(one('skein.turn'))
  const beneath = new Set([turn, idOf(one('invoke_agent desk'))])
  for (const commit of span('skein.commit')) expect(beneath).toContain(parentOf(commit))
})

test('a caller in process is the parent of the session, and not of later ones', async () => {
  const { runtime } = await boot({ agents: [lookingAgent()] })
  const thread = await runtime.threads.create({ agent: 'desk' })
  const tracer = api.trace.getTracer('mine')
  await tracer.startActiveSpan('caller', async (caller) => {
    await runtime.threads.run(thread.id, 'Look.')
    caller.end()
  })
  expect(tree()).toMatchObject({ caller: { 'invoke_agent desk': { 'skein.turn': {} } } })
  await runtime.stop()
})

test('the traceparent of a request is stored with its message, also without telemetry', async () => {
  const traceparent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'
  const store = memoryStore()
  const send = async (runtime: EmbeddedRuntime, threadId: string, header: string) => {
    const http = createHttp(runtime, { auth: 'none' })
    const response = await http.fetch(
      new Request(`http://localhost/threads/${threadId}/messages`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', traceparent: header },
        body: JSON.stringify({ text: 'Look.' }),
      }),
    )
    expect(response.status).toBeLessThan(300)
  }
  const first = await createRuntime({ agents: [lookingAgent()], store })
  const thread = await first.threads.create({ agent: 'desk' })
  await send(first, thread.id, traceparent)
  const other = await first.threads.create({ agent: 'desk' })
  await send(first, other.id, 'nonsense')
  const queued = await store.events(other.id, { after: 0 })
  expect(queued.at(-1)?.event).not.toHaveProperty('trace')

  const { runtime } = await boot({ agents: [lookingAgent()], store, at: Date.now() + 1000 })
  await runtime.threads.settled(thread.id)
  await runtime.idle()
  await runtime.stop()
  const [session] = span('invoke_agent desk').filter(
    ({ attributes }) => attributes['gen_ai.conversation.id'] === thread.id,
  )
  expect(session!.spanContext().traceId).toBe('4bf92f3577b34da6a3ce929d0e0e4736')
  expect(parentOf(session!)).toBe('00f067aa0ba902b7')
})

test('a wait for approval is a span, and the trace goes on in another process', async () => {
  const refund = defineTool({
    name: 'refund',
    description: 'Pays back.',
    args: z.object({}),
    risk: 'write_high_risk',
    rollback: () => ({ type: 'tool_call', target: 'charge', payload: {} }),
    execute: () => 'paid',
  })
  const charge = defineTool({
    name: 'charge',
    description: 'Charges.',
    args: z.object({}),
    risk: 'write_low_risk',
    execute: () => 'charged',
  })
  const model = scripted(({ messages }) =>
    messages.at(-1)?.type === 'tool_result' ? says('Paid.') : calls('refund', {}),
  )
  const prompt = definePrompt({ name: 'desk', prompt: 'Pay.', model, tools: [refund] })
  const agents = [defineAgent({ name: 'desk', sideA: { prompt } })]
  const store = memoryStore()
  const first = await boot({ agents, tools: [charge], store })
  const thread = await first.runtime.threads.create({ agent: 'desk' })
  await first.runtime.threads.run(thread.id, 'Pay back.')
  await first.runtime.stop()

  const second = await boot({ agents, tools: [charge], store, at: START + 60_000 })
  const [item] = await second.runtime.inbox.list()
  const { threadId, interruptId } = item!
  await second.runtime.inbox.approve({ threadId, interruptId, by: 'pat' })
  await second.runtime.threads.settled(thread.id)
  await second.runtime.stop()

  const sessions = span('invoke_agent desk')
  expect(sessions).toHaveLength(2)
  const [before, after] = sessions as [ReadableSpan, ReadableSpan]
  expect(before.attributes['skein.session.state']).toBe('waiting')
  expect(after.attributes).toMatchObject({
    'skein.session.state': 'completed',
    'skein.session.continued': true,
  })
  expect(parentOf(after)).toBe(idOf(before))
  const traces = exporter.getFinishedSpans().map((item) => item.spanContext().traceId)
  expect(new Set(traces).size).toBe(1)
  const wait = one('skein.wait')
  expect(wait.attributes).toMatchObject({
    'skein.wait.kind': 'approval',
    'skein.wait.answer': 'approve',
    'gen_ai.tool.name': 'refund',
  })
  expect([ms(wait.startTime), ms(wait.endTime)]).toEqual([START, START + 60_000])
  const all = await metrics()
  expect(all.get('skein.waits')).toEqual([
    { attributes: { 'skein.wait.kind': 'approval' }, value: 1 },
  ])
  expect(all.get('skein.wait.duration')?.[0]?.value).toMatchObject({ count: 1, sum: 60 })
})

test('the session of a child is beneath the call that made it, and its report continues the trace', async () => {
  const report = defineTool({
    name: 'report',
    description: 'Ends.',
    args: z.object({ found: z.string() }),
    risk: 'read_only',
    execute: () => 'reported',
  })
  const searcher = scripted(() => calls('report', { found: '3 letters' }))
  const archive = defineAgent({
    name: 'archive',
    type: 'dual_ai',
    maxSessionTurns: 10,
    exposeAsTool: true,
    toolDescription: 'Searches.',
    sideA: {
      prompt: definePrompt({ name: 's', prompt: 'Search.', model: searcher, tools: [report] }),
      sessionStop: { name: report, messageProperty: 'found' },
    },
    sideB: { prompt: definePrompt({ name: 'c', prompt: 'Check.', model: scripted([]) }) },
  })
  const librarian = scripted(({ messages }) => {
    const last = messages.at(-1)!
    if (last.type === 'user' && last.text.startsWith('Subagent (')) return says('Found.')
    if (messages.some(({ type }) => type === 'tool_result')) return says('Asked.')
    return calls('subagent_create', { agent: 'archive', name: 'letters', message: 'Find.' })
  })
  const tools = [{ name: archive, blocking: false, resumable: { maxInstances: 2 } }]
  const desk = defineAgent({
    name: 'desk',
    sideA: { prompt: definePrompt({ name: 'l', prompt: 'Help.', model: librarian, tools }) },
  })
  const { runtime, errors } = await boot({ agents: [desk] })
  const thread = await runtime.threads.create({ agent: 'desk' })
  await runtime.threads.send(thread.id, 'Letters?')
  await runtime.idle()
  await runtime.stop()
  expect(errors).toEqual([])
  const child = one('invoke_agent archive')
  expect(parentOf(child)).toBe(idOf(one('execute_tool subagent_create')))
  expect(child.attributes['skein.thread.parent_id']).toBe(thread.id)
  const sessions = span('invoke_agent desk')
  expect(sessions).toHaveLength(2)
  const second = sessions.find((item) => parentOf(item) !== undefined)!
  const chain: (string | undefined)[] = []
  let at: ReadableSpan | undefined = second
  while (at) {
    const parent = parentOf(at)
    at = exporter.getFinishedSpans().find((item) => idOf(item) === parent)
    if (at) chain.push(at.name)
  }
  expect(chain).toContain('invoke_agent archive')
  expect(chain.at(-1)).toBe('invoke_agent desk')
})

test('metrics have the values of the run, by the names of the conventions', async () => {
  const { runtime, timers } = await boot({ agents: [lookingAgent()] })
  const thread = await runtime.threads.create({ agent: 'desk' })
  await runtime.threads.run(thread.id, 'Look.')
  await timers.advance(0)
  const all = await metrics()
  const { tokens } = (await runtime.threads.get(thread.id)) as { tokens: number }
  const usage = all.get('gen_ai.client.token.usage')! as {
    attributes: Record<string, unknown>
    value: { sum: number; count: number }
  }[]
  expect(usage.reduce((sum, { value }) => sum + value.sum, 0)).toBe(tokens)
  expect(usage.map(({ attributes }) => attributes['gen_ai.token.type']).toSorted()).toEqual([
    'input',
    'output',
  ])
  expect(all.get('gen_ai.client.operation.duration')?.[0]).toMatchObject({
    attributes: { 'gen_ai.operation.name': 'chat', 'gen_ai.request.model': 'script' },
    value: { count: 2 },
  })
  expect(all.get('skein.turn.duration')?.[0]?.value).toMatchObject({ count: 1 })
  expect(all.get('skein.queue.duration')?.[0]?.value).toMatchObject({ count: 1 })
  expect(all.get('skein.drains.running')?.[0]?.value).toBe(0)
  expect(all.has('skein.commit.duration')).toBe(true)
  expect(all.has('skein.failures')).toBe(false)
  await runtime.stop()
})

test('failures are counted by code, and mark their spans', async () => {
  const model = scripted([fails({ code: 'AUTHENTICATION_FAILED', message: 'key CANARY-9d1' })])
  const prompt = definePrompt({ name: 'desk', prompt: 'x', model })
  const { runtime } = await boot({ agents: [defineAgent({ name: 'desk', sideA: { prompt } })] })
  const thread = await runtime.threads.create({ agent: 'desk' })
  await runtime.threads.run(thread.id, 'Go.')
  await runtime.stop()
  const session = one('invoke_agent desk')
  expect(session.status.code).toBe(api.SpanStatusCode.ERROR)
  expect(session.attributes['error.type']).toBe('model_error')
  const codes = (await metrics())
    .get('skein.failures')!
    .map(({ attributes }) => (attributes as Record<string, unknown>)['error.type'])
  expect(codes).toEqual(expect.arrayContaining(['AUTHENTICATION_FAILED', 'model_error']))
})

test('a scheduled effect has a span of its own', async () => {
  const note = defineEffect({
    name: 'note',
    args: z.object({}),
    execute: () => {
      api.trace.getTracer('mine').startSpan('inside').end()
    },
  })
  const model = scripted([says('Hello.')])
  const prompt = definePrompt({ name: 'desk', prompt: 'x', model })
  const agents = [defineAgent({ name: 'desk', sideA: { prompt } })]
  const { runtime } = await boot({ agents, effects: [note] })
  const thread = await runtime.threads.create({ agent: 'desk' })
  await runtime.withState(thread.id, (state) => void state.scheduleEffect('note', {}, 0))
  await runtime.idle()
  await runtime.stop()
  expect(tree()).toEqual({ 'skein.effect note': { inside: {} } })
})

test('without telemetry nothing is added to the log', async () => {
  const store = memoryStore()
  const { runtime } = await boot({ agents: [lookingAgent()], store, telemetry: undefined })
  const thread = await runtime.threads.create({ agent: 'desk' })
  await runtime.threads.run(thread.id, 'Look.')
  await runtime.stop()
  const events = await store.events(thread.id, { after: 0 })
  expect(events.some(({ event }) => 'trace' in event)).toBe(false)
  expect(exporter.getFinishedSpans().map(({ name }) => name)).toEqual(['query'])
})

describe('laws', () => {
  test('law: every span ends, starts within its trace, and the fold of the log is the live fold', async () => {
    const step = fc.constantFrom('look', 'fail')
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.array(step, { minLength: 1, maxLength: 4 }), { minLength: 1, maxLength: 4 }),
        async (rounds) => {
          exporter.reset()
          const script = rounds.flatMap((steps) => [
            ...steps.map((kind) =>
              kind === 'look'
                ? calls('look', {})
                : fails({ code: 'PROVIDER_ERROR', message: 'no' }),
            ),
            says('Done.'),
          ])
          const prompt = definePrompt({
            name: 'desk',
            prompt: 'x',
            model: scripted(script),
            tools: [look],
          })
          const store = memoryStore()
          const agents = [defineAgent({ name: 'desk', sideA: { prompt } })]
          const { runtime, timers } = await boot({ agents, store })
          const thread = await runtime.threads.create({ agent: 'desk' })
          for (const _ of rounds) {
            await runtime.threads.send(thread.id, 'Go.')
            // Longer than any back-off, and more often than a step is tried.
            for (let i = 0; i < 25; i++) await timers.advance(100_000)
          }
          await runtime.stop()
          const spans = exporter.getFinishedSpans()
          const known = new Map(spans.map((item) => [idOf(item), item]))
          for (const item of spans) {
            expect(item.ended).toBe(true)
            const parent = parentOf(item)
            if (parent === undefined) {
              expect(item.name).toBe('invoke_agent desk')
              continue
            }
            const above = known.get(parent)!
            expect(above.spanContext().traceId).toBe(item.spanContext().traceId)
            expect(ms(above.startTime)).toBeLessThanOrEqual(ms(item.startTime))
          }
          const events = await store.events(thread.id, { after: 0, limit: 10_000 })
          const sessions = events.filter(({ event }) => event.type === 'session_start')
          for (const { event } of sessions)
            expect(parseTraceparent((event as { trace?: string }).trace)).toBeDefined()
          expect(foldKernel(events).session).toBeUndefined()
        },
      ),
      { numRuns: 15, seed: 14 },
    )
  })

  test('law: a traceparent is read only when it is valid', () => {
    const hex = (length: number) =>
      fc.string({
        unit: fc.constantFrom(...'0123456789abcdef'),
        minLength: length,
        maxLength: length,
      })
    fc.assert(
      fc.property(hex(2), hex(32), hex(16), hex(2), (version, traceId, spanId, flags) => {
        const isValid = version !== 'ff' && !/^0+$/.test(traceId) && !/^0+$/.test(spanId)
        const read = parseTraceparent(`${version}-${traceId}-${spanId}-${flags}`)
        expect(read !== undefined).toBe(isValid)
        if (read) expect(read).toMatchObject({ traceId, spanId, traceFlags: parseInt(flags, 16) })
      }),
    )
    for (const wrong of ['', '00', '00-1-2-3', `00-${'g'.repeat(32)}-${'1'.repeat(16)}-00`])
      expect(parseTraceparent(wrong)).toBeUndefined()
  })
})
