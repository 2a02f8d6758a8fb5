import { agent, AgentState, type Agent, type AgentContext, type RunOptions } from '@skein/agents'
import { memoryCheckpoints } from '@skein/agents/checkpoint'
import { loop, plan, react } from '@skein/agents/execution'
import { UserMessage } from '@skein/ai'
import { calls, says, scripted, waits } from '@skein/ai/testing'
import { describe, expect, test } from 'vitest'
import { custom } from './support/custom-strategy.ts'
import { uuidV4 } from './support/state.ts'
import { add } from './support/tools.ts'

const start = AgentState.initial()
const turnOfLoop = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

describe.each(Object.entries({ loop, react, plan, custom }))('%s', (_name, strategy) => {
  test('UAP-043 a stream is there immediately, and nothing happens before it is read', async () => {
    const told: string[] = []
    const model = scripted(({ structure }) => says(structure ? '{"steps":[]}' : 'ok'))
    const worker = agent({
      model,
      execution: strategy(),
      middleware: [{ name: 'look', before: () => void told.push('before') }],
    })
    const stream = worker.stream('x', start)
    expect(stream[Symbol.asyncIterator]).toBeTypeOf('function')
    expect(stream.abort).toBeTypeOf('function')
    expect(stream.state).toBe(start)
    for (let turns = 0; turns < 5; turns++) await turnOfLoop()
    expect([told, model.requests.length]).toEqual([[], 0])
    const { turn, state } = await stream.result
    expect(turn.response.text).toBe('ok')
    expect(told).toEqual(['before'])
    expect(state).toBeInstanceOf(AgentState)
    // What is wrong with a call is in its result, not thrown.
    const wrong = worker.stream(7 as never, start)
    await expect(wrong.result).rejects.toMatchObject({ code: 'INVALID_REQUEST' })
  })

  test('UAP-043 UAP-152 abort() says why, before the first event and after it', async () => {
    for (const isRead of [false, true]) {
      const model = scripted([waits(Infinity)])
      const stream = agent({ model, execution: strategy() }).stream('x', start)
      const reason = new Error('enough')
      const { result } = stream
      const failed = expect(result).rejects.toMatchObject({ code: 'CANCELLED', cause: reason })
      while (isRead && model.requests.length === 0) await turnOfLoop()
      stream.abort(reason)
      await failed
      if (isRead) expect(model.requests[0]!.signal.reason).toBe(reason)
      stream.abort('again')
      await expect(stream.result).rejects.toMatchObject({ cause: reason })
    }
  })
})

test('UAP-043 the state of a stream is that of the last step that ended, while it runs and after a failure', async () => {
  const model = scripted([calls('add', { a: 1, b: 1 }), calls('add', { a: 2, b: 2 })])
  const stream = agent({ model, tools: [add] }).stream('x', start)
  const steps: number[] = []
  for await (const { uap } of { [Symbol.asyncIterator]: () => stream[Symbol.asyncIterator]() })
    if (uap?.type === 'step_start') {
      steps.push(stream.state.step)
      if (uap.step === 3) break
    }
  await expect(stream.result).rejects.toMatchObject({ code: 'CANCELLED' })
  expect(steps).toEqual([0, 1, 2])
  expect(stream.state.messages).toHaveLength(5)
})

test('UAP-041 an empty text is an input, and so are messages of all types, for every call', async () => {
  const model = scripted(() => says('ok'))
  const worker = agent({ model })
  const forms = {
    generate: async (input: string) => (await worker.generate(input, start)).turn,
    stream: async (input: string) => (await worker.stream(input, start).result).turn,
    ask: async (input: string) => (await worker.ask(input, start)).turn,
    query: (input: string) => worker.query(input),
  }
  for (const [name, run] of Object.entries(forms)) {
    const { messages } = await run('')
    expect(messages[0], name).toBeInstanceOf(UserMessage)
    expect([messages[0]!.text, model.requests.at(-1)!.messages.length], name).toEqual(['', 1])
    const own = new UserMessage([{ type: 'text', text: 'mine' }])
    expect((await run(own as never)).messages[0], name).toBe(own)
    expect(model.requests.at(-1)!.messages[0], name).toBe(own)
  }
})

test('UAP-047 UAP-041 the options of a call hold for every call', async () => {
  const asked = start.withMessage(new UserMessage('x'))
  const forms: Record<string, (worker: Agent, options: RunOptions) => Promise<unknown>> = {
    generate: (worker, options) => worker.generate('x', start, options),
    stream: (worker, options) => worker.stream('x', start, options).result,
    ask: (worker, options) => worker.ask('x', start, options),
    query: (worker, options) => worker.query('x', options),
    resume: (worker, options) => worker.resume(asked, {}, options),
    resumeStream: (worker, options) => worker.resumeStream(asked, {}, options).result,
  }
  for (const [name, run] of Object.entries(forms))
    for (const checkpoints of [undefined, memoryCheckpoints()]) {
      const seen: unknown[] = []
      const parentContext = { agentId: 'above', stateId: 's' } as AgentContext
      const worker = agent({
        model: scripted(() => says('ok')),
        checkpoints,
        execution: custom((context) => seen.push(context.parentContext)),
        middleware: [
          { name: 'look', before: ({ metadata }) => void seen.push(metadata['tenant']) },
        ],
      })
      await run(worker, { metadata: { tenant: 't' }, parentContext })
      expect(seen, name).toEqual(['t', parentContext])
      const effects: string[] = []
      const plain = agent({ model: scripted(() => says('ok')), checkpoints })
      await run(plain, { commit: ({ type }) => void effects.push(type) })
      expect(effects, name).toEqual(['inference_start', 'inference_end'])
      await expect(run(plain, { signal: AbortSignal.abort('no') }), name).rejects.toMatchObject({
        code: 'CANCELLED',
        cause: 'no',
      })
      await Promise.all([worker.flush(), plain.flush()])
    }
})

test('UAP-048 a query starts from the initial state, with its own options and no others', async () => {
  const seen: AgentState[] = []
  const execution = custom(({ state }) => seen.push(state))
  const worker = agent({ model: scripted(() => says('ok')), execution })
  await worker.query('x')
  await worker.query('y')
  const { id: _, ...initial } = AgentState.initial().toJSON()
  expect(seen).toHaveLength(2)
  for (const { id, ...state } of seen.map((one) => one.toJSON())) {
    expect(state).toEqual(initial)
    expect(id).toMatch(uuidV4)
  }
})
