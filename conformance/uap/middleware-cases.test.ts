/** Middleware and hooks around every entry of an agent: generate, stream, resume and resumeStream. */
import {
  agent,
  AgentState,
  type AgentOptions,
  type GenerateResult,
  type Middleware,
  type MiddlewareContext,
  type RunOptions,
} from '@skein/agents'
import { react } from '@skein/agents/execution'
import { logging } from '@skein/agents/middleware'
import { AssistantMessage, UserMessage } from '@skein/ai'
import { calls, fails, says, scripted } from '@skein/ai/testing'
import { manualClock } from '@skein/base'
import { describe, expect, test } from 'vitest'
import { add } from './support/tools.ts'

const start = AgentState.initial()
/** A state whose last call has no result yet, so that `resume` has something to do. */
const open = start.withMessages([
  new UserMessage('first question'),
  new AssistantMessage('first answer'),
  new UserMessage('second question'),
  new UserMessage('a prompt', { metadata: { uap: { synthetic: true } } }),
  new AssistantMessage('', [{ toolCallId: 'c', toolName: 'add', arguments: { a: 1, b: 1 } }]),
])

type Entry = (options: Partial<AgentOptions>, run?: RunOptions) => Promise<GenerateResult>

const make = (options: Partial<AgentOptions>) =>
  agent({ model: scripted(() => says('hi')), tools: [add], ...options })
const entries: [string, Entry, AgentState][] = [
  ['generate', (options, run) => make(options).generate('asked', start, run), start],
  ['stream', (options, run) => make(options).stream('asked', start, run).result, start],
  ['resume', (options, run) => make(options).resume(open, {}, run), open],
  ['resumeStream', (options, run) => make(options).resumeStream(open, {}, run).result, open],
]

describe.each(entries)('%s', (name, enter, given) => {
  test('UAP-129 the context has agent, input, state and the metadata of the request', async () => {
    const seen: MiddlewareContext[] = []
    const middleware = [{ name: 'see', before: (context: MiddlewareContext) => void seen.push(context) }] // prettier-ignore
    const metadata = { zero: 0, no: false, empty: '', nothing: null }
    await enter({ middleware }, { metadata })
    const [context] = seen
    expect(context!.input.text).toBe(name.startsWith('resume') ? 'second question' : 'asked')
    expect(context!.state).toBe(given)
    expect(typeof context!.agent.generate).toBe('function')
    expect({ ...context!.metadata }).toEqual(metadata)
  })

  test('UAP-131 UAP-132 before replaces the state, and each after the result of the one inside it', async () => {
    const model = scripted(() => says('hi'))
    const state = given
      .withMessage(new UserMessage('replaced'))
      .withContext([new UserMessage('replaced'), ...given.messages])
    const step = (tag: string): Middleware => ({
      name: tag,
      after: (_, result) => ({
        ...result,
        state: result.state.withMetadata('log', `${String(result.state.metadata['log'])}${tag}`),
      }),
    })
    const result = await enter({
      model,
      middleware: [step('1'), step('2'), { name: 'r', before: (one) => ({ ...one, state }) }, step('3')], // prettier-ignore
    })
    expect(model.requests[0]!.messages[0]!.text).toBe('replaced')
    expect(result.state.metadata['log']).toBe('undefined321')
  })

  test('UAP-133 UAP-134 an error passes all levels with their own contexts, until one recovers', async () => {
    const log: unknown[] = []
    const mark = (tag: string, more: Partial<Middleware> = {}): Middleware => ({
      name: tag,
      before: (context) => {
        const state = context.state.withMetadata('tag', tag)
        return { ...context, state }
      },
      after: ({ state }) => void log.push(['after', tag, state.metadata['tag']]),
      onError: ({ state }, error) => void log.push(['error', tag, state.metadata['tag'], error.message]), // prettier-ignore
      ...more,
    })
    const recovery = { turn: {} as GenerateResult['turn'], state: start }
    const recovers: Middleware = { name: 'r', onError: () => recovery }
    const model = scripted([fails('boom')])
    const result = await enter({ model, middleware: [mark('1'), mark('2'), recovers, mark('3')] })
    expect(result).toBe(recovery)
    expect(log).toEqual([
      ['error', '3', '3', expect.stringContaining('boom')],
      ['after', '2', '2'],
      ['after', '1', '1'],
    ])
  })

  test('UAP-140 UAP-141 hooks of the agent come first: onError may recover, onComplete comes once', async () => {
    const log: unknown[] = []
    const recovery = { turn: {} as GenerateResult['turn'], state: start }
    const strategy = {
      onError: (error: Error) => {
        log.push(error.message.includes('boom'))
        return recovery
      },
      onComplete: (result: GenerateResult) => void log.push(result),
    }
    const failsLate: Middleware = {
      name: 'late',
      after: () => Promise.reject(new Error('late')),
      onError: (_, error) => (log.push(error.message), recovery),
    }
    const result = await enter({ model: scripted([fails('boom')]), strategy, middleware: [failsLate] }) // prettier-ignore
    expect(result).toBe(recovery)
    expect(log).toEqual([true, recovery, expect.stringContaining('late')])
  })

  test('UAP-128 hooks may be methods of an object with private fields', async () => {
    class Own implements Middleware {
      readonly name = 'own'
      readonly #log: string[] = []
      get log(): readonly string[] {
        return this.#log
      }
      before(): void {
        this.#log.push('before')
      }
      onInference(): void {
        this.#log.push('inference')
      }
      after(): void {
        this.#log.push('after')
      }
      onError(): void {
        this.#log.push('error')
      }
    }
    const [good, bad] = [new Own(), new Own()]
    await enter({ middleware: [good] })
    await enter({ middleware: [bad], model: scripted([fails('boom')]) }).catch(() => {})
    expect(good.log).toEqual(['before', 'inference', 'after'])
    expect(bad.log).toEqual(['before', 'inference', 'error'])
  })
})

test('UAP-129 entries are set, read and removed as properties and as entries, whatever their names', async () => {
  const seen: unknown[] = []
  const middleware: Middleware[] = [
    {
      name: 'own',
      before: ({ metadata }) => {
        for (const name of ['size', 'get', 'x', 'y']) metadata[name] = `my ${name}`
        delete metadata['x']
        metadata['gone'] = 1
        delete metadata['gone']
      },
      after: ({ metadata }) =>
        void seen.push({ ...metadata }, metadata['size'], metadata['get'], 'x' in metadata),
    },
  ]
  await make({ middleware }).generate('x', start)
  const rest = { size: 'my size', get: 'my get', y: 'my y' }
  expect(seen).toEqual([rest, 'my size', 'my get', false])
})

test('UAP-129 the input of a resumed run is the last question, not a prompt of the strategy', async () => {
  const inputs: string[] = []
  const middleware = [{ name: 'see', before: ({ input }: MiddlewareContext) => void inputs.push(input.text) }] // prettier-ignore
  const model = scripted(({ tools }) => (tools.length > 0 ? calls('add', { a: 1, b: 1 }) : says('hm'))) // prettier-ignore
  const strategy = { stopCondition: () => true }
  const worker = make({ model, middleware, strategy, execution: react() })
  const { state: one } = await worker.generate('one', start)
  const { state: two } = await worker.generate('two', one)
  await worker.resume(two)
  expect(inputs).toEqual(['one', 'two', 'two'])
})

test('UAP-135 at every level nothing of what was said is logged; runs at the same time have their own times', async () => {
  const clock = manualClock()
  const lines: [string, unknown][] = []
  const log = logging({ level: 'debug', clock, logger: (...line) => void lines.push(line) })
  const waitsFor = new Map<string, number>([['secret slow', 40], ['secret fast', 7]]) // prettier-ignore
  const ends: (() => void)[] = []
  const hold: Middleware = {
    name: 'hold',
    before: ({ input }) =>
      new Promise<void>((resolve) => {
        const ms = waitsFor.get(input.text) ?? 0
        ends.push(() => (clock.advance(ms), resolve()))
      }),
  }
  const history = start.withMessage(new UserMessage('secret history'))
  const worker = make({ middleware: [log, hold] })
  const slow = worker.generate('secret slow', history)
  clock.advance(100)
  const fast = worker.generate('secret fast', history)
  for (let turns = 0; ends.length < 2 && turns < 1000; turns++) await Promise.resolve()
  ends[1]!()
  await fast
  ends[0]!()
  await slow
  const failing = make({ model: scripted([fails('boom')]), middleware: [log] })
  await expect(failing.generate('secret input', history)).rejects.toThrow()
  expect(JSON.stringify(lines)).not.toContain('secret')
  const times = lines.flatMap(
    ([, details]) => (details as { durationMs?: number }).durationMs ?? [],
  )
  expect(times).toEqual([7, 147, 0])
})

test('UAP-135 with includeMessages the input and all that the run produced are logged', async () => {
  const lines: [string, { messages?: unknown }][] = []
  const log = logging({
    includeMessages: true,
    logger: (...line) => void lines.push(line as never),
  })
  const model = scripted([calls('add', { a: 2, b: 3 }), says('five')])
  const history = start.withMessage(new UserMessage('history'))
  await make({ model, middleware: [log] }).generate('the question', history)
  const types = lines.map(([, { messages }]) => (messages as { type: string }[]).map(({ type }) => type)) // prettier-ignore
  expect(types).toEqual([['user'], ['user', 'assistant', 'tool_result', 'assistant']])
  expect(lines[0]![0]).toContain('the question')
  expect(JSON.stringify(lines)).not.toContain('history')
})
