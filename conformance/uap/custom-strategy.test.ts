import {
  agent,
  AgentState,
  subagent,
  type AgentStrategy,
  type ExecutionContext,
  type ExecutionResult,
  type ExecutionStrategy,
} from '@skein/agents'
import { memoryCheckpoints } from '@skein/agents/checkpoint'
import { loop } from '@skein/agents/execution'
import type { Tool } from '@skein/ai'
import { calls, says, scripted, waits } from '@skein/ai/testing'
import { describe, expect, test } from 'vitest'
import { custom } from './support/custom-strategy.ts'
import { collect, recordingStore } from './support/state.ts'
import { add } from './support/tools.ts'

const start = AgentState.initial()
const forms = ['generate', 'stream'] as const

/** Runs an agent in one of two ways and gives its result. */
function run(form: (typeof forms)[number], worker: ReturnType<typeof agent>, state = start) {
  return form === 'generate' ? worker.generate('x', state) : worker.stream('x', state).result
}

/** A strategy that is a class with private state, as applications write them. */
class Counting implements ExecutionStrategy {
  readonly name = 'counting'
  #runs = 0

  get runs(): number {
    return this.#runs
  }

  async execute(context: ExecutionContext): Promise<ExecutionResult> {
    this.#runs++
    return custom().execute(context)
  }

  stream(context: ExecutionContext) {
    this.#runs++
    return custom().stream(context)
  }
}

describe.each(forms)('%s', (form) => {
  test('UAP-054 a strategy may be an instance of a class', async () => {
    const execution = new Counting()
    const { turn } = await run(form, agent({ model: scripted([says('hi')]), execution }))
    expect([turn.response.text, execution.runs]).toEqual(['hi', 1])
  })

  test('UAP-052 it is given the hooks of the application, with a store and without', async () => {
    for (const checkpoints of [undefined, recordingStore()]) {
      const log: unknown[] = []
      const strategy: AgentStrategy = {
        onStepStart: (step) => void log.push(['start', step]),
        onStepEnd: (step, { state }) => {
          log.push(['end', step])
          return state.withMetadata('adopted', true)
        },
        stopCondition: () => true,
      }
      let adopted: unknown
      const execution = adopting((state) => (adopted = state))
      const worker = agent({ model: scripted([says('hi')]), execution, strategy, checkpoints })
      const { state } = await run(form, worker)
      await worker.flush()
      expect(log).toEqual([
        ['start', 1],
        ['end', 1],
      ])
      expect(adopted).toBeInstanceOf(AgentState)
      expect(state.metadata).toMatchObject({ adopted: true })
      expect(checkpoints?.saves.map(([, { metadata }]) => metadata['adopted']) ?? [true]).toEqual([
        true,
      ])
    }
  })

  test.each(['the call', 'the agent', 'the stream'] as const)(
    'UAP-052 UAP-055 an abort by %s ends the model that it was given, and its own stream',
    async (by) => {
      if (by === 'the stream' && form === 'generate') return expect(form).toBe('generate')
      const seen: ExecutionContext[] = []
      const aborted: unknown[] = []
      const model = scripted([waits(Infinity)])
      const plain = custom((context) => seen.push(context))
      const execution: ExecutionStrategy = {
        ...plain,
        stream: (context) => ({ ...plain.stream(context), abort: (why) => void aborted.push(why) }),
      }
      const controller = new AbortController()
      const { signal } = controller
      const worker = agent({ model, execution, ...(by === 'the agent' && { signal }) })
      const options = by === 'the call' ? { signal } : {}
      const stream = form === 'stream' ? worker.stream('x', start, options) : undefined
      const running = stream ? stream.result : worker.generate('x', start, options)
      const failed = expect(running).rejects.toMatchObject({ code: 'CANCELLED' })
      while (model.requests.length === 0) await new Promise((resolve) => setImmediate(resolve))
      if (by === 'the stream') stream?.abort('enough')
      else controller.abort('enough')
      await failed
      expect(seen[0]!.signal!.aborted).toBe(true)
      expect(seen[0]!.signal!.reason).toBe('enough')
      // The request itself was aborted, not only forgotten.
      expect(model.requests[0]!.signal.aborted).toBe(true)
      expect(aborted).toEqual(form === 'stream' ? ['enough'] : [])
    },
  )

  test('UAP-052 UAP-032 its tools and its model name the agent to tools, also when it runs them itself', async () => {
    const given: object[] = []
    const look: Tool = {
      ...add,
      name: 'look',
      run: (_: unknown, context: object) => (given.push(context), 'seen'),
    }
    const execution = custom()
    const own: ExecutionStrategy = {
      name: 'own',
      execute: async (context) => {
        const tool = context.tools.find(({ name }) => name === 'look')!
        await tool.run({} as never, { toolCallId: 'by hand' } as never)
        return execution.execute(context)
      },
      stream: (context) => {
        const tool = context.tools.find(({ name }) => name === 'look')!
        void tool.run({} as never, { toolCallId: 'by hand' } as never)
        return execution.stream(context)
      },
    }
    const model = scripted([calls('look', {}, { id: 'c' }), says('ok')])
    const config = { headers: { 'x-a': 'b' } }
    const options = { model, config, tools: [look, add], execution: own, sessionId: 's' }
    const worker = agent(options)
    await run(form, worker)
    expect(given).toHaveLength(2)
    for (const context of given)
      expect(context).toMatchObject({
        agentId: worker.id,
        sessionId: 's',
        parentModel: model,
        parentConfig: config,
        streaming: form === 'stream',
        onSubagentEvent: expect.any(Function),
      })
    expect(given[1]).toMatchObject({ toolCallId: 'c', idempotencyKey: 's:c' })
  })

  test('UAP-056 UAP-055 traces of sub-agents are in the result and the saved state, once', async () => {
    const child = subagent({
      name: 'child',
      description: 'd',
      parameters: { type: 'object' },
      agent: agent({ model: scripted(() => says('done')) }),
      prompt: () => 'go',
      ids: () => 'sub',
    })
    for (const keepsTraces of [false, true]) {
      const checkpoints = recordingStore()
      const model = scripted([calls('child'), says('ok')])
      const worker = agent({ model, tools: [child], execution: silent(keepsTraces), checkpoints })
      const { state } = await run(form, worker)
      await worker.flush()
      const saved = checkpoints.saves.map(([, json]) => json)
      expect(saved).toHaveLength(1)
      expect(saved[0]!.subagentTraces ?? []).toHaveLength(1)
      expect(saved[0]!.metadata).toEqual({
        agentId: worker.id,
        sessionId: state.metadata['sessionId'],
      })
      expect(state.subagentTraces).toMatchObject([{ subagentType: 'child', result: 'done' }])
    }
  })

  test('UAP-051 UAP-056 a built-in strategy inside another saves each step once and takes messages', async () => {
    const inner = loop()
    const wrapped: ExecutionStrategy = {
      name: 'wrapped',
      execute: (context) => inner.execute(context),
      stream: (context) => inner.stream(context),
    }
    const checkpoints = memoryCheckpoints()
    const model = scripted([calls('add', { a: 1, b: 1 }), says('two'), says('more')])
    const worker = agent({ model, tools: [add], execution: wrapped, checkpoints, sessionId: 's' })
    if (form === 'generate') await worker.generate('x', start)
    else {
      const stream = worker.stream('x', start)
      stream.steer('and this')
      await collect(stream)
      expect(stream.state.step).toBe(2)
      const { state } = await stream.result
      const asked = state.messages.filter(({ type }) => type === 'user')
      expect(asked.map(({ text }) => text)).toEqual(['x', 'and this'])
    }
    await worker.flush()
    const saved = await checkpoints.history!('s')
    expect(saved.map(({ step }) => step)).toEqual([1, 2])
  })

  test('UAP-053 UAP-029 what a strategy returns besides turn and state stays, and a missing turn is named', async () => {
    const interrupts = [{ id: 'i', toolCallId: 'i', path: [], kind: 'input', request: {} }] as const
    // Its state is a new one, so that the session has to be added to it.
    const more = ({ turn }: ExecutionResult) =>
      ({ turn, state: AgentState.initial(), interrupts, stopReason: 'interrupted' }) as const
    const execution = changing(more)
    const worker = agent({ model: scripted(() => says('ok')), execution, sessionId: 's' })
    const { state, ...rest } = await run(form, worker)
    expect(state.metadata).toEqual({ sessionId: 's' })
    expect(rest).toMatchObject({ interrupts, stopReason: 'interrupted' })
    for (const bad of [{ state: start }, { turn: {} }, undefined]) {
      const broken = changing(() => bad as never)
      await expect(
        run(form, agent({ model: scripted(() => says('ok')), execution: broken })),
      ).rejects.toMatchObject({ code: 'INVALID_REQUEST' })
    }
  })
})

test('UAP-054 a reader that leaves after the last step does not abort a strategy', async () => {
  let finish: () => void = () => {}
  const gate = new Promise<void>((resolve) => (finish = resolve))
  const inner = custom()
  const execution: ExecutionStrategy = {
    ...inner,
    stream: (context) => {
      const result = gate.then(() => inner.execute(context))
      return {
        result,
        abort: () => {},
        async *[Symbol.asyncIterator]() {
          const data = { usage: {}, stopReason: 'complete' }
          const uap = { type: 'step_end', step: 1, agentId: context.agent.id, data }
          yield { source: 'uap', uap } as never
        },
      }
    },
  }
  const stream = agent({ model: scripted([says('ok')]), execution }).stream('x', start)
  setImmediate(() => finish())
  for await (const event of stream) {
    expect(event.uap?.type).toBe('step_end')
    break
  }
  expect((await stream.result).turn.response.text).toBe('ok')
})

/** The protocol's example, which continues with the state that `onStepEnd` returns. */
function adopting(tell: (state: AgentState | void) => void): ExecutionStrategy {
  return streaming(async ({ llm, input, state, strategy }) => {
    await strategy.onStepStart?.(1, state)
    const turn = await llm.generate(state.messages, input)
    const next = state.withMessages(turn.messages)
    const adopted = await strategy.onStepEnd?.(1, { turn, state: next })
    tell(adopted)
    return { turn, state: adopted ?? next }
  })
}

/** A strategy that calls no hook; it may put the traces of its sub-agents into the state itself. */
function silent(keepsTraces: boolean): ExecutionStrategy {
  return streaming(async ({ llm, input, state }) => {
    const turn = await llm.generate(state.messages, input)
    const next = AgentState.initial().withMessages(turn.messages)
    if (!keepsTraces) return { turn, state: next }
    const who = { subagentId: 'sub', subagentType: 'child', parentToolCallId: 'c', prompt: 'go' }
    const trace = { ...who, startTime: 1, endTime: 2, success: true, result: 'done' }
    return { turn, state: next.withSubagentTrace(trace) }
  })
}

/** The protocol's example with another result. */
function changing(change: (result: ExecutionResult) => ExecutionResult): ExecutionStrategy {
  return streaming(async (context) => change(await custom().execute(context)))
}

/** Makes a strategy whose stream has no events. */
function streaming(execute: ExecutionStrategy['execute']): ExecutionStrategy {
  return {
    name: 'streaming',
    execute,
    stream: (context) => {
      const result = execute(context)
      result.catch(() => {})
      return { result, abort: () => {}, async *[Symbol.asyncIterator]() {} }
    },
  }
}
