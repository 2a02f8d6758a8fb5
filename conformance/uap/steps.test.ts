/** What each step of a run reports and is sent, and in which order its end is decided. */
import {
  agent,
  AgentState,
  subagent,
  type AgentOptions,
  type AgentStreamEvent,
  type ExecutionStrategy,
} from '@skein/agents'
import { loop, plan, react } from '@skein/agents/execution'
import { defer, llm, UserMessage, type Message, type Tool, type ToolExecution } from '@skein/ai'
import { anthropic } from '@skein/ai/anthropic'
import { openai } from '@skein/ai/openai'
import { calls, says, scripted, stops, vendorServer, type ScriptFunction } from '@skein/ai/testing'
import { expect, test } from 'vitest'
import { custom } from './support/custom-strategy.ts'
import { collect, recordingStore } from './support/state.ts'
import { add } from './support/tools.ts'

const start = AgentState.initial()
const strategies = [loop(), react(), plan()]
const ends = stops('tool_use', { usage: { inputTokens: 5, outputTokens: 2, totalTokens: 7 } })

/** Plans nothing, thinks, and adds so many times; each answer has 7 tokens. */
function adding(count: number): ScriptFunction {
  return ({ structure, tools, messages }) => {
    if (structure) return [says('{"steps":[]}'), ends]
    if (tools.length === 0) return [says('I add.'), ends]
    const done = messages.filter(({ type }) => type === 'tool_result').length
    // The same call id in every round, as some vendors have it.
    return done < count
      ? [calls('add', { a: 1, b: done }, { id: 'c' }), ends]
      : [says('done'), ends]
  }
}

test.each(strategies)(
  'UAP-059 UAP-004 each step of $name reports its own tokens, calls and executions',
  async (execution) => {
    const turns: [tokens: number, cycles: number, executed: number][] = []
    const observed: (readonly ToolExecution[])[] = []
    const worker = agent({
      model: scripted(adding(3)),
      tools: [add],
      execution,
      strategy: {
        onStepEnd: (_, { turn }) =>
          void turns.push([turn.usage.totalTokens, turn.cycles, turn.toolExecutions.length]),
        onObserve: (_, executions) => void observed.push(executions),
      },
    })
    const stream = worker.stream('x', start)
    const events = (await collect(stream)).flatMap(({ uap }) => uap ?? [])
    const { turn } = await stream.result
    const told = events.flatMap((event) => (event.type === 'step_end' ? event.data.usage : []))
    expect(told.map(({ totalTokens }) => totalTokens)).toEqual(turns.map(([tokens]) => tokens))
    const sum = (at: 0 | 1 | 2) => turns.reduce((total, one) => total + one[at], 0)
    expect([sum(0), sum(1), sum(2)]).toEqual([
      turn.usage.totalTokens,
      turn.cycles,
      turn.toolExecutions.length,
    ])
    expect(turn.usage.totalTokens).toBe(turn.cycles * 7)
    expect(turn.toolExecutions.map(({ result }) => result)).toEqual([1, 2, 3])
    const observations = events.flatMap((event) =>
      event.type === 'observation' ? [event.data.observations] : [],
    )
    expect(observations).toEqual(observed)
    expect(observations.flat()).toEqual(turn.toolExecutions)
  },
)

test('UAP-063 UAP-068 UAP-059 a stop condition is asked after every step, also the last or one at a limit', async () => {
  const ways: [ExecutionStrategy, Partial<AgentOptions>, end: string][] = [
    [loop(), {}, 'complete'],
    [react(), {}, 'complete'],
    [loop({ maxIterations: 2 }), {}, 'max_iterations'],
    [react({ maxSteps: 2 }), {}, 'max_steps'],
    [loop(), { toolStrategy: { maxIterations: 1 } }, 'max_iterations'],
  ]
  for (const [execution, options, end] of ways)
    for (const stopsLast of [false, true])
      for (const streaming of [false, true]) {
        const asked: number[] = []
        const worker = agent({
          model: scripted(adding(end === 'complete' ? 1 : 9)),
          tools: [add],
          execution,
          ...options,
          strategy: {
            stopCondition: ({ step }) => {
              asked.push(step)
              return stopsLast && step === 2
            },
          },
        })
        const running = streaming ? worker.stream('x', start).result : worker.generate('x', start)
        const { stopReason } = await running
        expect([asked, stopReason]).toEqual([[1, 2], stopsLast ? 'stop_condition' : end])
      }
})

test('UAP-014 a history that onStepEnd replaced is sent, whatever onInference had put in its place', async () => {
  const texts = (messages: readonly Message[]) => messages.map(({ text, type }) => text || type)
  for (const length of [1, 3, 6]) {
    const model = scripted(adding(1))
    const replaced = Array.from({ length }, (_, index) => new UserMessage(`new ${index}`))
    const worker = agent({
      model,
      tools: [add],
      strategy: {
        onInference: ({ cycle, messages }) =>
          cycle === 1 ? { messages: [new UserMessage('hidden'), ...messages] } : undefined,
        onStepEnd: (step, { state }) => (step === 1 ? state.withContext(replaced) : undefined),
      },
    })
    await worker.generate('x', start)
    expect(texts(model.requests[0]!.messages)).toEqual(['hidden', 'x'])
    expect(texts(model.requests[1]!.messages)).toEqual(texts(replaced))
  }
})

test('UAP-052 the input of a resumed run is the last question, with every strategy', async () => {
  const seen: string[] = []
  const ask: Tool = { ...add, name: 'ask', run: () => defer({ kind: 'input', request: '' }) }
  for (const execution of strategies) {
    const worker = agent({
      model: scripted(({ structure, tools, messages }) => {
        if (structure) return says('{"steps":[]}')
        const isAsked = messages.some(({ text }) => text === 'second')
        const isDone = messages.at(-1)?.type === 'tool_result'
        return tools.length > 0 && isAsked && !isDone ? calls('ask', {}, { id: 'q' }) : says('ok')
      }),
      tools: [ask],
      execution,
      middleware: [{ name: 'look', before: ({ input }) => void seen.push(input.text) }],
    })
    const { state } = await worker.generate('first', start)
    const waits = await worker.generate('second', state)
    await worker.resume(waits.state, { q: { type: 'result', value: 1 } })
    expect(seen.splice(0)).toEqual(['first', 'second', 'second'])
  }
})

test.each([
  ['anthropic', anthropic('claude-x')],
  ['openai', openai('gpt-x')],
  ['openai chat', openai('gpt-x', { api: 'chat' })],
] as const)(
  'UAP-004 UAP-060 the turn of an agent has every field that llm() gives (%s)',
  async (_, model) => {
    const config = () => ({ fetch: vendorServer(() => says('Hello.')).fetch, apiKey: 'k' })
    const plain = await llm({ model, config: config() }).generate('x')
    for (const execution of [loop(), custom()]) {
      const { turn } = await agent({ model, config: config(), execution }).generate('x', start)
      const { messages, response, ...facts } = turn
      const { messages: sent, response: answer, ...expected } = plain
      expect(facts).toEqual(expected)
      expect([messages.length, response.text]).toEqual([sent.length, answer.text])
      expect(facts).toHaveProperty('rawStopReason')
    }
  },
)

test('UAP-085 traces of sub-agents that ran side by side are in the order in which they ended', async () => {
  const kid = (name: string, wait: Promise<unknown>) =>
    subagent({
      name,
      description: 'd',
      parameters: { type: 'object' },
      agent: agent({ model: scripted(async () => (await wait, says(name))) }),
      prompt: () => 'go',
    })
  let release = (): void => {}
  const held = new Promise<void>((resolve) => (release = resolve))
  const later = Promise.resolve().then(() => held)
  const ended: string[] = []
  const worker = agent({
    model: scripted([[calls('slow'), calls('quick')], says('done')]),
    tools: [kid('slow', later), kid('quick', Promise.resolve())],
  })
  const stream = worker.stream('x', start)
  const look = ({ uap }: AgentStreamEvent) => {
    if (uap?.type !== 'subagent_end') return
    ended.push(uap.data.subagentType)
    release()
  }
  for await (const event of stream) look(event)
  const { state } = await stream.result
  expect(ended).toEqual(['quick', 'slow'])
  expect(state.subagentTraces.map(({ subagentType }) => subagentType)).toEqual(ended)
})

test('UAP-056 the checkpoint of a strategy of one’s own has the state that onStepEnd returned', async () => {
  const checkpoints = recordingStore()
  const worker = agent({
    model: scripted([says('ok')]),
    execution: custom(),
    checkpoints,
    strategy: { onStepEnd: (_, { state }) => state.withMetadata('adopted', true) },
  })
  await worker.generate('x', start)
  await worker.flush()
  expect(checkpoints.saves.map(([, { metadata }]) => metadata['adopted'])).toEqual([true])
})
