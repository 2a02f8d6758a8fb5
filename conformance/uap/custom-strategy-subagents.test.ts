/** A strategy of one's own: what the agent adds around it. */
import {
  agent,
  AgentState,
  subagent,
  type AgentContext,
  type AgentOptions,
  type ExecutionContext,
  type ExecutionStrategy,
  type SubagentEvent,
} from '@skein/agents'
import { recordEvents } from '@skein/agents/testing'
import type { Tool } from '@skein/ai'
import { calls, says, scripted, waits } from '@skein/ai/testing'
import { describe, expect, test } from 'vitest'
import { custom } from './support/custom-strategy.ts'
import { recordingStore } from './support/state.ts'

const start = AgentState.initial()
const parameters = { type: 'object', properties: {} }

function kid(options: Partial<AgentOptions> = {}): Tool {
  const model = scripted(() => says('hi'))
  const its = agent({ model, ...options })
  return subagent({ name: 'kid', description: 'd', parameters, agent: its, prompt: () => 'go' })
}

/** Calls the tool with the id `k`, then speaks. */
function caller(tool: Tool, options: Partial<AgentOptions> = {}) {
  const model = scripted(({ messages }) =>
    messages.at(-1)?.type === 'user' ? calls(tool.name, {}, { id: 'k' }) : says('done'),
  )
  return agent({ model, tools: [tool], execution: custom(), ...options })
}

describe('UAP-121 UAP-125 traces are in the result and in the checkpoint, each once', () => {
  const silent = (context: ExecutionContext) => ({ ...context, strategy: {} })
  const strategy = custom()
  const executions: Readonly<Record<string, ExecutionStrategy>> = {
    'that saves nothing': {
      name: 'silent',
      execute: (context) => strategy.execute(silent(context)),
      stream: (context) => strategy.stream(silent(context)),
    },
    'that saves its step': strategy,
    'of two steps, of which it saves the first': twoSteps,
  }
  /** A tool that reports the start of a sub-agent, but not its end. */
  const forgets: Tool = {
    name: 'forgets',
    description: 'd',
    parameters,
    run: (_: unknown, { onSubagentEvent, toolCallId }: AgentContext) => {
      const identity = { subagentId: 's', subagentType: 't', parentToolCallId: toolCallId }
      onSubagentEvent({ type: 'subagent_start', ...identity, prompt: 'p', timestamp: 1 })
    },
  }

  test.each(Object.entries(executions))('UAP-121 UAP-125 a strategy %s', async (_, execution) => {
    const runs = [kid(), forgets].flatMap(
      (one) =>
        [
          [one, true],
          [one, false],
        ] as const,
    )
    for (const [tool, streaming] of runs) {
      const checkpoints = recordingStore()
      const parent = caller(tool, { execution, checkpoints, sessionId: 's' })
      const stream = streaming ? parent.stream('x', start) : undefined
      const { state } = await (stream?.result ?? parent.generate('x', start))
      await parent.flush()
      expect(state.subagentTraces.length).toBe(tool === forgets || execution !== twoSteps ? 1 : 2)
      expect(state.subagentTraces).toContainEqual(
        expect.objectContaining({ parentToolCallId: 'k', success: tool !== forgets }),
      )
      const saved = (await checkpoints.load('s'))!
      expect(saved.subagentTraces).toEqual(state.subagentTraces)
      expect(AgentState.fromJSON(saved).subagentTraces).toEqual(state.subagentTraces)
      // Each saved state has the traces of the calls that it contains.
      if (tool === forgets) continue
      for (const [, { messages, subagentTraces = [] }] of checkpoints.saves)
        expect(subagentTraces).toHaveLength(
          messages.filter(({ type }) => type === 'tool_result').length,
        )
      if (stream && execution === strategy)
        expect(stream.state.subagentTraces).toEqual(state.subagentTraces)
    }
  })
})

/** Asks the model twice, and reports the end of the first of these steps only. */
const twoSteps: ExecutionStrategy = {
  name: 'two steps',
  async execute({ llm, input, state, strategy }) {
    const turn = await llm.generate(state.messages, input)
    const next = state.withMessages(turn.messages).withStep(1)
    await strategy.onStepEnd?.(1, { turn, state: next })
    const last = await llm.generate(next.messages, 'more')
    return { turn: last, state: next.withMessages(last.messages).withStep(2) }
  },
  stream(context) {
    const result = this.execute(context)
    result.catch(() => {})
    return {
      result,
      abort: () => {},
      async *[Symbol.asyncIterator]() {
        await result
        yield* [] // its events are those of its sub-agents
      },
    }
  },
}

test('UAP-121 a trace that the strategy has stored itself is not stored again', async () => {
  const strategy = custom()
  const traces = new Map<string, SubagentEvent>()
  const listens = (inner: Tool): Tool => ({
    ...inner,
    run: (params: never, context: AgentContext) =>
      inner.run(params, {
        ...context,
        onSubagentEvent: (event: SubagentEvent) => {
          if (event.type === 'subagent_end') traces.set(event.subagentId, event)
          return context.onSubagentEvent(event)
        },
      } as never),
  })
  const execution = {
    ...strategy,
    execute: async (context: never) => {
      const result = await strategy.execute(context)
      const [end] = traces.values()
      const times = { prompt: 'go', startTime: 1, endTime: 2, success: true }
      const { subagentId, subagentType, parentToolCallId } = end!
      const own = { subagentId, subagentType, parentToolCallId, ...times }
      return { ...result, state: result.state.withSubagentTrace(own) }
    },
  }
  const { state } = await caller(listens(kid()), { execution }).generate('x', start)
  expect(state.subagentTraces).toMatchObject([{ startTime: 1, endTime: 2 }])
  expect(state.subagentTraces).toHaveLength(1)
})

describe('UAP-115 UAP-123 a sub-agent that has told its start has one end and one trace', () => {
  const identity = { subagentId: 's', subagentType: 't', parentToolCallId: 'k' }
  const begins = { type: 'subagent_start', ...identity, prompt: 'p', timestamp: 1 } as const
  const hand = (rest: () => unknown): Tool => ({
    name: 'hand',
    description: 'd',
    parameters,
    run: (_: unknown, { onSubagentEvent }: AgentContext) => (onSubagentEvent(begins), rest()),
  })
  const count = (types: readonly string[], type: string) =>
    types.filter((one) => one === type).length

  test.each([{ streaming: true }, { streaming: false }])(
    'UAP-115 UAP-123 also if its tool forgets the end (streaming: $streaming)',
    async ({ streaming }) => {
      const parent = caller(hand(() => 'forgot'))
      const stream = streaming ? await recordEvents(parent.stream('x', start)) : undefined
      const result = stream?.result ?? (await parent.generate('x', start))
      expect(result.state.subagentTraces).toMatchObject([{ ...identity, success: false }])
      if (stream)
        expect([
          count(stream.types, 'subagent_start'),
          count(stream.types, 'subagent_end'),
        ]).toEqual([1, 1])
    },
  )

  test('UAP-115 and if the run is aborted while it works', async () => {
    for (const tool of [
      hand(() => new Promise(() => {})),
      kid({ model: scripted([waits(Infinity)]) }),
    ]) {
      const stream = caller(tool).stream('x', start)
      const types: string[] = []
      const read = (async () => {
        for await (const { uap } of stream) {
          if (uap) types.push(uap.type)
          if (uap?.type === 'subagent_start') stream.abort()
        }
      })()
      await expect(read).rejects.toMatchObject({ code: 'CANCELLED' })
      expect([count(types, 'subagent_start'), count(types, 'subagent_end')]).toEqual([1, 1])
    }
  })
})

test('UAP-146 events of a sub-agent name the step that the strategy has reached', async () => {
  const parent = caller(kid(), { execution: twoSteps, checkpoints: recordingStore() })
  const { events, result } = await recordEvents(parent.stream('x', start))
  const steps = events.flatMap(({ uap }) => (uap?.type === 'subagent_start' ? [uap.step] : []))
  expect(steps).toEqual([0, 1])
  expect(result?.state.subagentTraces).toHaveLength(2)
})
