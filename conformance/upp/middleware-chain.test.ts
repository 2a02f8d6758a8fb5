import { inspect } from 'node:util'
import { manualClock } from '@skein/base'
import {
  llm,
  loggingMiddleware,
  parsedObjectMiddleware,
  type LogLevel,
  type Middleware,
  type MiddlewareContext,
  type ParsedStreamEvent,
  type StreamContext,
  type StreamEvent,
} from '@skein/ai'
import { calls, fails, says, scripted, waits } from '@skein/ai/testing'
import { expect, test, vi } from 'vitest'

async function collect(stream: AsyncIterable<StreamEvent>): Promise<StreamEvent[]> {
  const events: StreamEvent[] = []
  for await (const event of stream) events.push(event)
  return events
}

/** A model that is aborted while it answers. */
function cancelled() {
  const controller = new AbortController()
  const step = () => {
    controller.abort()
    return waits(Infinity)
  }
  return { model: scripted([step]), signal: controller.signal }
}

const echo = { name: 'echo', description: '', parameters: {}, run: (args: object) => args }

test('UPP-096 each onCycle gets the request as the one before left it', async () => {
  const add = (name: string): Middleware => ({
    name,
    onCycle: async (request, cycle) => ({
      ...request,
      system: `${request.system ?? ''}${name}${cycle}`,
    }),
  })
  const model = scripted([calls('echo'), says('ok')])
  const middleware = [add('a'), { name: 'none', onCycle: () => {} }, add('b')]
  await llm({ model, middleware, tools: [echo], system: '>' }).generate('x')
  expect(model.requests.map(({ system }) => system)).toEqual(['>a1b1', '>a2b2'])
})

test('UPP-096 `with` replaces the middleware of an instance and keeps it where it is not named', async () => {
  const log: string[] = []
  const told = (name: string): Middleware => ({ name, onStart: () => void log.push(name) })
  const first = llm({ model: scripted(() => says('ok')), middleware: [told('a')] })
  await first.with({ middleware: [told('b')] }).generate('x')
  await first.with({ system: 's' }).generate('x')
  await first.with({ middleware: [] }).generate('x')
  expect(log).toEqual(['b', 'a'])
})

/** A middleware whose hooks need their `this`. */
class Counter implements Middleware {
  readonly name = 'counter'
  readonly #log: string[] = []

  get log(): readonly string[] {
    return this.#log
  }

  onStart(_context: MiddlewareContext): void {
    this.#log.push('onStart')
  }
  onRequest(): void {
    this.#log.push('onRequest')
  }
  onCycle(): void {
    this.#log.push('onCycle')
  }
  wrapInference: NonNullable<Middleware['wrapInference']> = (request, next) => {
    this.#log.push('wrapInference')
    return next(request)
  }
  onToolCall(): void {
    this.#log.push('onToolCall')
  }
  onToolResult(): void {
    this.#log.push('onToolResult')
  }
  onStreamEvent(event: StreamEvent, _context: StreamContext): StreamEvent {
    if (event.type === 'message_stop') this.#log.push('onStreamEvent')
    return event
  }
  onStreamEnd(): void {
    this.#log.push('onStreamEnd')
  }
  onResponse(): void {
    this.#log.push('onResponse')
  }
  onTurn(): void {
    this.#log.push('onTurn')
  }
  onEnd(): void {
    this.#log.push('onEnd')
  }
  onError(): void {
    this.#log.push('onError')
  }
  onAbort(): void {
    this.#log.push('onAbort')
  }
}

test('UPP-097 the hooks of a class keep their `this`', async () => {
  const counter = new Counter()
  const middleware = [counter]
  const model = scripted([calls('echo'), says('ok')])
  await llm({ model, tools: [echo], middleware }).stream('x').turn
  const inference = ['onCycle', 'wrapInference', 'onStreamEvent']
  const tool = ['onToolCall', 'onToolResult']
  const end = ['onStreamEnd', 'onResponse', 'onTurn', 'onEnd']
  const done = ['onStart', 'onRequest', ...inference, ...tool, ...inference, ...end]
  expect(counter.log).toEqual(done)
  await expect(llm({ model: scripted([fails()]), middleware }).generate('x')).rejects.toThrow()
  await expect(llm({ ...cancelled(), middleware }).generate('x')).rejects.toThrow()
  const asked = ['onStart', 'onRequest', 'onCycle', 'wrapInference']
  expect(counter.log.slice(done.length)).toEqual([...asked, 'onError', ...asked, 'onAbort'])
})

test('UPP-097 UPP-106 a hook may give a thenable; all events of an expansion continue in order', async () => {
  const seen: string[] = []
  const text = (of: string): StreamEvent => ({ type: 'text_delta', index: 0, delta: { text: of } })
  const expand: Middleware = {
    name: 'expand',
    onStreamEvent: (event) => {
      if (event.type === 'content_block_start') return Promise.resolve(null)
      const list = event.type === 'text_delta' ? ['a', 'b', 'c', 'd'].map(text) : [event]
      // Not a `Promise` of this realm, but something that can be awaited.
      const value = (resolve: (given: unknown) => void): void => resolve(list)
      // oxlint-disable-next-line no-thenable -- that is what is tested
      return { then: value } as never
    },
  }
  const watch: Middleware = {
    name: 'watch',
    onStreamEvent: (event) => {
      if (event.type === 'text_delta') seen.push(event.delta.text)
      return event
    },
  }
  const stream = llm({ model: scripted([says('x')]), middleware: [expand, watch] }).stream('x')
  const shown = await collect(stream)
  expect(seen).toEqual(['a', 'b', 'c', 'd'])
  expect(shown.filter(({ type }) => type === 'text_delta')).toEqual(seen.map(text))
  expect(shown.map(({ type }) => type)).not.toContain('content_block_start')
  expect((await stream.turn).response.text).toBe('x')
})

test('UPP-108 arguments of calls are shown as they were written, structured data as the caller gets it', async () => {
  const structure = { type: 'object', properties: { a: { type: 'string' }, b: { type: 'null' } } }
  const model = scripted([calls('echo', { a: null, b: null }), says('{"a":null,"b":null}')])
  const middleware = [parsedObjectMiddleware()]
  const stream = llm({ model, tools: [echo], structure, middleware }).stream('x')
  const last: Record<string, unknown> = {}
  for (const event of (await collect(stream)) as ParsedStreamEvent[])
    if (event.delta.parsed !== undefined) last[event.type] = event.delta.parsed
  expect(last).toEqual({ tool_call_delta: { a: null, b: null }, object_delta: { b: null } })
  expect((await stream.turn).data).toEqual({ b: null })
})

test('UPP-109 each level shows its own lines and those above it, for every end of a call', async () => {
  const levels: LogLevel[] = ['debug', 'info', 'warn', 'error']
  const counts = async (level: LogLevel): Promise<Record<string, string[]>> => {
    const ends: Record<string, string[]> = {}
    for (const end of ['ended', 'failed', 'cancelled']) {
      const lines: string[] = []
      const middleware = [loggingMiddleware({ level, logger: (at) => void lines.push(at) })]
      const script = [end === 'failed' ? fails() : calls('echo'), says('ok')]
      const options = end === 'cancelled' ? cancelled() : { model: scripted(script) }
      await llm({ ...options, tools: [echo], middleware })
        .generate('x')
        .catch(() => {})
      ends[end] = lines
    }
    return ends
  }
  const all = await counts('debug')
  expect(all['cancelled']!.filter((at) => at !== 'debug')).toEqual(['info', 'warn'])
  expect(new Set(all['ended'])).toEqual(new Set(['info', 'debug']))
  expect(all['failed']!.filter((at) => at !== 'debug')).toEqual(['info', 'error'])
  for (const level of levels) {
    const rank = levels.indexOf(level)
    const kept = Object.entries(all).map(([end, lines]) => [
      end,
      lines.filter((at) => levels.indexOf(at as LogLevel) >= rank),
    ])
    expect(await counts(level)).toEqual(Object.fromEntries(kept))
  }
})

test.each(['onStart', 'onRequest', 'onCycle', 'onResponse', 'onTurn', 'onEnd'] as const)(
  'UPP-103 UPP-158 a key in an error of %s reaches neither the hooks nor the caller',
  async (hook) => {
    const apiKey = 'key-0123456789-secret'
    const told: string[] = []
    const fail = (): never => {
      throw new Error(`The key ${apiKey} is wrong.`, { cause: new Error(apiKey) })
    }
    const middleware: Middleware[] = [
      { name: 'fail', [hook]: fail },
      { name: 'told', onError: (error) => void told.push(inspect(error, { depth: 9 })) },
    ]
    const model = scripted([says('ok')])
    const call = llm({ model, middleware, config: { apiKey } }).generate('x')
    told.push(inspect(await call.catch((error: unknown) => error), { depth: 9 }))
    expect(told).toHaveLength(2)
    for (const text of told) {
      expect(text).toContain('[redacted]')
      expect(text).not.toContain(apiKey)
    }
  },
)

test('UPP-109 the line of a failure has all that is known of it', async () => {
  const facts = { code: 'RATE_LIMITED', statusCode: 429, vendorCode: 'slow_down', requestId: 'r1' }
  const lines: unknown[] = []
  const middleware = [loggingMiddleware({ logger: (...line) => void lines.push(line) })]
  const clock = manualClock(0)
  const step = () => {
    clock.advance(5)
    return fails({ message: 'Too fast.', ...facts } as never)
  }
  await llm({ model: scripted([step]), middleware, clock })
    .generate('x')
    .catch(() => {})
  const details = { provider: 'scripted', modelId: 'script', modality: 'llm', durationMs: 5 }
  expect(lines.at(-1)).toEqual([
    'error',
    '[llm] scripted/script failed: Too fast.',
    { ...details, ...facts },
  ])
})

test('UPP-109 the console gets neither control characters in the line nor in its details', async () => {
  const lines: unknown[] = []
  const spy = vi.spyOn(console, 'error').mockImplementation((...line) => void lines.push(line))
  const message = 'Bad\u001b[31m\u0007 news'
  const model = scripted([fails({ message, vendorCode: 'x\u001b[2J', code: 'PROVIDER_ERROR' })])
  await llm({ model, middleware: [loggingMiddleware({ level: 'error' })] })
    .generate('x')
    .catch(() => {})
  spy.mockRestore()
  expect(lines).toHaveLength(1)
  expect(JSON.stringify(lines)).toContain('news')
  // oxlint-disable-next-line no-control-regex
  expect(
    lines
      .flat()
      .flatMap((part) => Object.values(part as object))
      .join(),
  ).not.toMatch(/[\0-\x1f]/)
})

test('UPP-096 the signal of the call is sent, whatever a hook put into the request', async () => {
  const own = new AbortController()
  const change: Middleware = {
    name: 'change',
    onRequest: (context) => {
      context.request = { ...context.request, signal: new AbortController().signal }
    },
  }
  const model = scripted([says('ok')])
  await llm({ model, middleware: [change], signal: own.signal }).generate('x')
  expect(model.requests[0]?.signal.aborted).toBe(false)
  const seen: boolean[] = []
  const step = (request: { readonly signal: AbortSignal }) => {
    own.abort()
    seen.push(request.signal.aborted)
    return says('late')
  }
  const aborted = llm({ model: scripted([step]), middleware: [change], signal: own.signal })
  await expect(aborted.generate('x')).rejects.toMatchObject({ code: 'CANCELLED' })
  expect(seen).toEqual([true])
})
