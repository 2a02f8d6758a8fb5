/** What holds for every form of call: generate, stream, ask, query, resume and resumeStream. */
import {
  agent,
  AgentState,
  type Agent,
  type AgentContext,
  type AgentOptions,
  type Middleware,
  type RunOptions,
} from '@skein/agents'
import { loop, plan, react } from '@skein/agents/execution'
import { isUPPError, UserMessage, type Tool, type Turn } from '@skein/ai'
import { calls, fails, says, scripted, stops, waits } from '@skein/ai/testing'
import { describe, expect, test, vi } from 'vitest'
import { recordingStore } from './support/state.ts'
import { add } from './support/tools.ts'

const start = AgentState.initial()
const asked = start.withMessage(new UserMessage('x'))
type Form = (worker: Agent, options?: RunOptions) => Promise<Turn>
const forms: Readonly<Record<string, Form>> = {
  generate: async (worker, options) => (await worker.generate('x', start, options)).turn,
  stream: async (worker, options) => (await worker.stream('x', start, options).result).turn,
  ask: async (worker, options) => (await worker.ask('x', start, options)).turn,
  query: (worker, options) => worker.query('x', options),
  resume: async (worker, options) => (await worker.resume(asked, {}, options)).turn,
  resumeStream: async (worker, options) =>
    (await worker.resumeStream(asked, {}, options).result).turn,
}

describe.each(Object.entries(forms))('%s', (_, run) => {
  test('UAP-046 UAP-047 passes its options on, with and without a store', async () => {
    for (const checkpoints of [undefined, recordingStore()]) {
      const seen: unknown[] = []
      const middleware: Middleware[] = [
        { name: 'look', before: ({ metadata }) => void seen.push(metadata.get('trace')) },
      ]
      const look: Tool = {
        ...add,
        run: (_args: unknown, context: AgentContext) =>
          void seen.push(context.parentContext?.agentId),
      }
      const model = scripted([calls('add', { a: 1, b: 1 }), says('done')])
      const options: RunOptions = {
        metadata: { trace: 7 },
        parentContext: { agentId: 'above', stateId: 's' } as AgentContext,
        commit: ({ type }) => void seen.push(type),
      }
      await run(agent({ model, tools: [look], middleware, checkpoints }), options)
      expect(seen).toEqual([
        7,
        'inference_start',
        'inference_end',
        'call_start',
        'above',
        'call_end',
        'inference_start',
        'inference_end',
      ])
    }
  })

  test('UAP-046 UAP-047 is cancelled by its signal, also by one that was aborted before', async () => {
    for (const checkpoints of [undefined, recordingStore()]) {
      const signal = AbortSignal.abort(new Error('enough'))
      const model = scripted([says('never')])
      await expect(run(agent({ model, checkpoints }), { signal })).rejects.toMatchObject({
        code: 'CANCELLED',
        cause: { message: 'enough' },
      })
      expect(model.requests).toEqual([])
    }
  })

  test.each(['before', 'after', 'onError'] as const)(
    'UAP-001 fails with a UPPError if %s of a middleware throws something else',
    async (hook) => {
      for (const cause of [new TypeError('broken'), 'broken']) {
        const failing: Middleware = {
          name: 'failing',
          [hook]: () => {
            throw cause
          },
        }
        const model = scripted([hook === 'onError' ? fails('down') : says('ok')])
        const failed = await run(agent({ model, middleware: [failing] })).catch(
          (error: unknown) => error,
        )
        expect(isUPPError(failed)).toBe(true)
        expect(failed).toMatchObject({ code: 'INVALID_REQUEST', cause })
        expect((failed as Error).message).toContain(`${hook} of the middleware "failing" failed`)
      }
    },
  )

  test('UAP-021 arms no timer while a tool works', async () => {
    let works!: () => void
    let end!: (result: string) => void
    const isWorking = new Promise<void>((resolve) => (works = resolve))
    const result = new Promise<string>((resolve) => (end = resolve))
    const slow: Tool = { ...add, run: () => (works(), result) }
    const limits = vi.spyOn(AbortSignal, 'timeout') // which fake timers do not replace
    vi.useFakeTimers()
    try {
      const model = scripted([calls('add', { a: 1, b: 1 }), says('done')])
      const running = run(agent({ model, tools: [slow] }))
      await isWorking
      await vi.advanceTimersByTimeAsync(3_600_000)
      expect(vi.getTimerCount()).toBe(0)
      end('late')
      expect((await running).toolExecutions).toMatchObject([{ result: 'late', isError: false }])
      expect(limits).not.toHaveBeenCalled()
    } finally {
      vi.useRealTimers()
      limits.mockRestore()
    }
  })

  test('UAP-057 asks the model again after its tools, whatever stop reason came with the calls', async () => {
    for (const reason of ['end_turn', 'tool_use', 'max_tokens', 'other'] as const) {
      const adding = [calls('add', { a: 1, b: 1 }), stops(reason)]
      const model = scripted([adding, adding, says('done')])
      const turn = await run(agent({ model, tools: [add] }))
      expect([turn.response.text, turn.toolExecutions.length]).toEqual(['done', 2])
    }
  })
})

test('UAP-043 UAP-151 a stream that its reader aborts gives no further event, and fails', async () => {
  for (const form of ['stream', 'resumeStream', 'a stream whose result is awaited'] as const)
    for (let count = 1; count < 9; count++) {
      const model = scripted([
        [says('a'), calls('add', { a: 1, b: 1 })],
        [says('b'), waits(Infinity)],
      ])
      const worker = agent({ model, tools: [add] })
      const stream =
        form === 'resumeStream' ? worker.resumeStream(asked) : worker.stream('x', start)
      const reason = new Error('enough')
      if (form === 'a stream whose result is awaited') {
        void stream.result.catch(() => {}) // the run continues, and its events wait for the reader
        while (model.requests.length < 2) await new Promise((resolve) => setImmediate(resolve))
      }
      let read = 0
      const reading = (async () => {
        for await (const _ of stream) if (++read === count) stream.abort(reason)
      })()
      await expect(reading).rejects.toMatchObject({ code: 'CANCELLED', cause: reason })
      await expect(stream.result).rejects.toMatchObject({ code: 'CANCELLED', cause: reason })
      expect(read).toBe(count)
    }
})

test.each([
  ['loop', loop({ maxIterations: 3 }), 3],
  ['react', react({ maxSteps: 3 }), 3],
  ['the tool strategy', loop(), 4],
] as const)(
  'UAP-015 UAP-022 runs of one agent count their steps each for itself (limit of %s)',
  async (name, execution, steps) => {
    const model = scripted(({ tools }) =>
      tools.length === 0 ? says('I add.') : calls('add', { a: 1, b: 1 }),
    )
    const limit: Partial<AgentOptions> =
      name === 'the tool strategy' ? { toolStrategy: { maxIterations: 3 } } : {}
    const worker = agent({ model, tools: [add], execution, ...limit })
    const together = await Promise.all([
      worker.generate('a', start),
      worker.generate('b', start),
      worker.stream('c', start).result,
    ])
    const after = await worker.generate('d', together[0].state)
    for (const { turn, state } of [...together, after])
      expect([state.step, turn.toolExecutions.length]).toEqual([steps, 3])
  },
)

test.each([loop(), react(), plan()])(
  'UAP-017 UAP-018 UAP-019 a run of $name that has counted any number of steps and rounds continues',
  async (execution) => {
    const model = scripted(({ structure, tools, messages }) => {
      if (structure) return says('{"steps":[]}')
      if (tools.length === 0) return says('Continue.')
      const done = messages.filter(({ type }) => type === 'tool_result').length
      return done < 3 ? calls('add', { a: 1, b: 1 }) : says('done')
    })
    const worker = agent({ model, tools: [add], execution })
    const limited = agent({ ...worker, strategy: { stopCondition: () => true } })
    const { state, stopReason } = await limited.generate('x', start)
    expect(stopReason).toBe('stop_condition')
    const { run, ...json } = state.toJSON()
    const count = Number.MAX_SAFE_INTEGER - 10
    const counted = AgentState.fromJSON({ ...json, run: { ...run, steps: count, rounds: count } })
    const { turn, ...end } = await worker.resume(counted)
    expect([end.stopReason, turn.response.text]).toEqual(['complete', 'done'])
  },
)
