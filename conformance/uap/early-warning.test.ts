/** The rows that show first when the step engine is wrong: boundaries, context, equality, checkpoints. */
import {
  agent,
  AgentState,
  type AgentContext,
  type AgentStreamEvent,
  type ExecutionContext,
  type ExecutionStrategy,
} from '@skein/agents'
import { loop, plan, react } from '@skein/agents/execution'
import { type Tool, withToolContext } from '@skein/ai'
import { calls, says, scripted, type ScriptStep } from '@skein/ai/testing'
import { describe, expect, test } from 'vitest'
import { collect, content, outline, recordingStore } from './support/state.ts'
import { add } from './support/tools.ts'

const threeRounds: ScriptStep[] = [
  calls('add', { a: 1, b: 1 }),
  calls('add', { a: 2, b: 2 }),
  calls('add', { a: 3, b: 3 }),
  says('done'),
]
const planned: ScriptStep[] = [
  says(
    JSON.stringify({
      steps: [
        { id: 'one', description: 'First', tool: 'add', dependsOn: [] },
        { id: 'two', description: 'Second', dependsOn: ['one'] },
      ],
    }),
  ),
  calls('add', { a: 1, b: 1 }),
  says('one is done'),
  says('two is done'),
]
const reasoned: ScriptStep[] = [
  says('I must add'),
  calls('add', { a: 1, b: 1 }),
  says('that is all'),
  says('two'),
]
const strategies = [
  { name: 'loop', execution: loop, script: threeRounds, steps: 4 },
  { name: 'react', execution: react, script: reasoned, steps: 2 },
  { name: 'plan', execution: plan, script: planned, steps: 3 },
]

test('UAP-059 one inference with its tools is a step, for hooks, events, checkpoints and conditions', async () => {
  const log: string[] = []
  const checkpoints = recordingStore()
  const worker = agent({
    model: scripted(threeRounds),
    tools: [add],
    checkpoints,
    strategy: {
      onStepStart: (step, state) => void log.push(`start ${step} ${state.step}`),
      onStepEnd: (step, { turn, state }) =>
        void log.push(`end ${step} ${state.step} ${turn.cycles} ${turn.toolExecutions.length}`),
      stopCondition: (_, { steps }) => {
        log.push(`condition ${steps}`)
        return false
      },
    },
  })
  const stream = worker.stream('go', AgentState.initial())
  const events = await collect(stream)
  await worker.flush()
  const { turn } = await stream.result
  expect(log).toEqual(
    [1, 2, 3, 4].flatMap((step) => [
      `start ${step} ${step}`,
      `end ${step} ${step} 1 ${step < 4 ? 1 : 0}`,
      `condition ${step}`,
    ]),
  )
  const round = ['step_start', 'upp', 'action', 'upp', 'observation', 'step_end']
  expect(outline(events)).toEqual([...round, ...round, ...round, 'step_start', 'upp', 'step_end'])
  expect(checkpoints.saves.map(([, { step }]) => step)).toEqual([1, 2, 3, 4])
  expect(turn.cycles).toBe(4)
})

describe.each(strategies)('$name', ({ execution, script, steps }) => {
  test('UAP-100 UAP-102 a tool with two parameters gets the context, waiting and streaming', async () => {
    for (const mode of ['generate', 'stream'] as const) {
      const seen: AgentContext[] = []
      const aware: Tool = {
        ...add,
        run: ({ a, b }: { a: number; b: number }, context: AgentContext) => {
          seen.push(context)
          return a + b
        },
      }
      const model = scripted(script)
      const config = { headers: { 'x-from': 'parent' } }
      const worker = agent({ model, tools: [aware], execution: execution(), config })
      const { state } =
        mode === 'generate'
          ? await worker.generate('go', AgentState.initial())
          : await worker.stream('go', AgentState.initial()).result
      const asked = state.messages.flatMap((m) =>
        m.type === 'assistant' ? (m.toolCalls ?? []) : [],
      )
      expect(seen.map(({ toolCallId }) => toolCallId)).toEqual(asked.map((c) => c.toolCallId))
      expect(seen.length).toBeGreaterThan(0)
      for (const context of seen) {
        expect(context.parentModel).toBe(model)
        expect(context.parentConfig).toBe(config)
        expect(context.agentId).toBe(worker.id)
        expect(context.stateId).toMatch(/^[0-9a-f-]{36}$/)
        expect(context.onSubagentEvent).toBeTypeOf('function')
        expect(context.signal).toBeInstanceOf(AbortSignal)
        expect(context.idempotencyKey).toContain(context.toolCallId)
      }
    }
  })

  test('UAP-150 UAP-149 the state of a stream equals that of generate', async () => {
    const make = () => agent({ model: scripted(script), tools: [add], execution: execution() })
    const waited = await make().generate('go', AgentState.initial())
    const stream = make().stream('go', AgentState.initial())
    await collect(stream)
    const streamed = await stream.result
    expect(content(streamed.state)).toEqual(content(waited.state))
    expect(streamed.state.step).toBe(steps)
    expect(streamed.stopReason).toBe(waited.stopReason)
  })

  test('UAP-162 UAP-125 a checkpoint is saved after each step_end, with the state of that step', async () => {
    const order: string[] = []
    const checkpoints = recordingStore()
    const { save } = checkpoints
    checkpoints.save = async (id, state) => {
      order.push(`save ${state.step}`)
      await save(id, state)
    }
    const ended: string[] = []
    const worker = agent({
      model: scripted(script),
      tools: [add],
      execution: execution(),
      checkpoints,
      strategy: { onStepEnd: (_, { state }) => void ended.push(state.id) },
    })
    const stream = worker.stream('go', AgentState.initial())
    for await (const event of stream) note(event, order)
    await worker.flush()
    expect(order).toEqual(
      Array.from({ length: steps }, (_, i) => [`step_end ${i + 1}`, `save ${i + 1}`]).flat(),
    )
    expect(checkpoints.saves.map(([, { id }]) => id)).toEqual(ended)
    const { state } = await stream.result
    expect(checkpoints.saves.at(-1)![1]).toEqual(state.toJSON())
  })

  test('UAP-166 UAP-154 a run restored from any checkpoint asks what the uninterrupted run asked', async () => {
    const checkpoints = recordingStore()
    const whole = scripted(script)
    const options = { tools: [add], execution: execution(), sessionId: 's' }
    const first = agent({ ...options, model: whole, checkpoints })
    const { state: expected } = await first.generate('go', AgentState.initial())
    await first.flush()
    for (const [, saved] of checkpoints.saves) {
      const used = requestsBefore(whole.requests, saved.messages.length)
      const model = scripted(script.slice(used))
      const again = agent({ ...options, model, checkpoints: recordingStore() })
      const restored = AgentState.fromJSON(JSON.parse(JSON.stringify(saved)))
      const { state } = await again.resume(restored)
      const asked = (requests: typeof model.requests) =>
        requests.map(({ messages, tools }) => [
          messages.map((m) => [m.type, textOf(m)]),
          tools.length,
        ])
      expect(asked(model.requests)).toEqual(asked(whole.requests.slice(used)))
      expect({ ...(content(state) as object), metadata: {} }).toEqual({
        ...(content(expected) as object),
        metadata: {},
      })
    }
    expect(checkpoints.saves).toHaveLength(steps)
  })
})

test('UAP-151 UAP-043 a stream starts when it is read, gives its result without a reader, and can be read once', async () => {
  const model = scripted(threeRounds)
  const stream = agent({ model, tools: [add] }).stream('go', AgentState.initial())
  await new Promise((resolve) => setTimeout(resolve, 5))
  expect(model.requests).toHaveLength(0)
  const { turn, state } = await stream.result
  expect(turn.response.text).toBe('done')
  expect(state.step).toBe(4)
  expect((await collect(stream)).length).toBeGreaterThan(20)
  await expect(async () => collect(stream)).rejects.toMatchObject({ code: 'INVALID_REQUEST' })
})

test('UAP-151 leaving the loop aborts the run, and its result is CANCELLED', async () => {
  const model = scripted(threeRounds)
  const stream = agent({ model, tools: [add] }).stream('go', AgentState.initial())
  for await (const { uap } of stream) if (uap?.type === 'step_end' && uap.step === 2) break
  await expect(stream.result).rejects.toMatchObject({ name: 'UPPError', code: 'CANCELLED' })
  expect(model.requests).toHaveLength(2)
  expect(stream.state.step).toBe(2)
  expect(stream.state.messages.at(-1)?.type).toBe('tool_result')
})

test('UAP-151 abort reaches the tools of a built-in strategy inside another strategy', async () => {
  for (const inner of [loop(), react()]) {
    const outer: ExecutionStrategy = {
      name: 'outer',
      execute: (context) => inner.stream(context).result,
      stream: (context) => inner.stream(context),
    }
    for (const isRead of [true, false]) {
      let reached: (() => void) | undefined
      const running = new Promise<void>((resolve) => (reached = resolve))
      let signal: AbortSignal | undefined
      const slow = withToolContext({
        name: 'slow',
        description: 'Never ends by itself.',
        parameters: { type: 'object' },
        run: (_: object, context: AgentContext) => {
          signal = context.signal
          reached?.()
          return new Promise(() => {})
        },
      })
      const model = scripted(({ tools }) => (tools.length > 0 ? calls('slow') : says('hm')))
      const controller = new AbortController()
      const worker = agent({ model, tools: [slow], execution: outer, signal: controller.signal })
      const stream = worker.stream('go', AgentState.initial())
      const result = isRead ? stream.result : worker.generate('go', AgentState.initial())
      const ended = expect(result).rejects.toMatchObject({ code: 'CANCELLED' })
      await running
      if (isRead) stream.abort()
      else controller.abort()
      await ended
      expect(signal?.aborted).toBe(true)
    }
  }
})

test('UAP-151 a built-in strategy ends when the signal that its context names aborts', async () => {
  for (const inner of [loop(), react()]) {
    const own = new AbortController()
    let signal: AbortSignal | undefined
    const slow = withToolContext({
      name: 'slow',
      description: 'Never ends by itself.',
      parameters: { type: 'object' },
      run: (_: object, context: AgentContext) => {
        signal = context.signal
        setTimeout(() => own.abort(), 0)
        return new Promise(() => {})
      },
    })
    const ways = [
      (context: ExecutionContext) => inner.execute(context),
      (context: ExecutionContext) => inner.stream(context).result,
    ]
    for (const way of ways) {
      const execute = (context: ExecutionContext) => way({ ...context, signal: own.signal })
      const outer = { name: 'outer', execute, stream: inner.stream }
      const model = scripted(({ tools }) => (tools.length > 0 ? calls('slow') : says('hm')))
      const worker = agent({ model, tools: [slow], execution: outer })
      await expect(worker.generate('go', AgentState.initial())).rejects.toMatchObject({
        code: 'CANCELLED',
      })
      expect(signal?.aborted).toBe(true)
    }
  }
})

test('UAP-151 abort() rejects the result; leaving with the last event does not', async () => {
  const aborted = agent({ model: scripted(threeRounds), tools: [add] }).stream(
    'go',
    AgentState.initial(),
  )
  aborted.abort()
  await expect(aborted.result).rejects.toMatchObject({ code: 'CANCELLED' })
  const slow = { name: 'slow', after: () => new Promise<void>((done) => setTimeout(done, 5)) }
  const left = agent({ model: scripted([says('hi')]), middleware: [slow] }).stream(
    'go',
    AgentState.initial(),
  )
  for await (const { uap } of left) if (uap?.type === 'step_end') break
  expect((await left.result).turn.response.text).toBe('hi')
})

function note({ uap }: AgentStreamEvent, order: string[]): void {
  if (uap?.type === 'step_end') order.push(`step_end ${uap.step}`)
}

/** How many requests were made by the time a history had so many messages. */
function requestsBefore(
  requests: readonly { messages: readonly unknown[] }[],
  length: number,
): number {
  return requests.filter(({ messages }) => messages.length < length).length
}

function textOf(message: { readonly type: string; readonly text: string }): string {
  return message.type === 'tool_result'
    ? JSON.stringify(
        (message as unknown as { results: { result: unknown }[] }).results.map((r) => r.result),
      )
    : message.text
}
