import {
  agent,
  AgentState,
  type Agent,
  type AgentStreamEvent,
  type UAPEventType,
} from '@skein/agents'
import { loop, plan, react } from '@skein/agents/execution'
import { isUserMessage, type Tool, UserMessage } from '@skein/ai'
import { calls, emits, fails, says, scripted, waits } from '@skein/ai/testing'
import { describe, expect, test } from 'vitest'
import { collect, outline } from './support/state.ts'
import { add } from './support/tools.ts'

const start = AgentState.initial()
const adding = calls('add', { a: 1, b: 1 })
const planned = says('{"steps":[{"id":"a","description":"A","dependsOn":[]}]}')
const strategies = [
  { name: 'loop', execution: loop(), script: [adding, says('ok')] },
  { name: 'react', execution: react(), script: [says('t'), adding, says('t'), says('ok')] },
  { name: 'plan', execution: plan(), script: [planned, adding, says('ok')] },
]
const known: UAPEventType[] = [
  'step_start',
  'step_end',
  'reasoning',
  'action',
  'observation',
  'subagent_start',
  'subagent_event',
  'subagent_end',
  'plan_created',
  'plan_step_start',
  'plan_step_end',
]

describe.each(strategies)('$name', ({ execution, script }) => {
  const make = () => agent({ model: scripted(script), tools: [add], execution })

  test('UAP-145 UAP-146 an event is the agent’s or the model’s, never both', async () => {
    const worker = make()
    for (const event of await collect(worker.stream('x', start))) {
      expect(Object.keys(event).sort()).toEqual(['source', event.source].sort())
      if (event.source === 'upp') continue
      expect(Object.keys(event.uap).sort()).toEqual(['agentId', 'data', 'step', 'type'])
      expect(known).toContain(event.uap.type)
      expect(event.uap.agentId).toBe(worker.id)
      expect(Number.isInteger(event.uap.step)).toBe(true)
    }
    const steps = (await collect(make().stream('x', start))).flatMap(({ uap }) => uap?.step ?? [])
    expect(new Set(steps)).toEqual(new Set([1, 2]))
    expect(steps).toEqual(steps.toSorted())
  })

  test('UAP-148 steps begin and end in pairs, with all else inside', async () => {
    let open = 0
    for (const { uap } of await collect(make().stream('x', start))) {
      if (uap?.type === 'step_start') {
        expect(uap.step).toBe(open + 1)
        expect(open % 1).toBe(0)
        open += 0.5
      } else expect(open % 1).toBe(0.5)
      if (uap?.type === 'step_end') open += 0.5
    }
    expect(open).toBe(2)
  })

  test('UAP-149 the result’s state has every message, result and count', async () => {
    const stream = make().stream('x', start)
    const texts: string[] = []
    for await (const { upp } of stream) if (upp?.type === 'text_delta') texts.push(upp.delta.text)
    const { state, turn } = await stream.result
    expect(state.step).toBe(2)
    expect(state.messages.filter(({ type }) => type === 'tool_result')).toHaveLength(1)
    expect(state.messages.at(-1)?.text).toBe('ok')
    expect(texts.join('')).toContain('ok')
    expect(turn.cycles).toBe(script.length)
    if (execution.name === 'react') expect(state.reasoning).toEqual(['t', 't'])
    if (execution.name === 'plan') expect(state.plan).toMatchObject([{ status: 'completed' }])
  })
})

test('UAP-148 the phases of each strategy, in order', async () => {
  const outlines = await Promise.all(
    strategies.map(async ({ execution, script }) =>
      outline(
        await collect(
          agent({ model: scripted(script), tools: [add], execution }).stream('x', start),
        ),
      ).join(' '),
    ),
  )
  const acted = 'upp action upp observation'
  expect(outlines).toEqual([
    `step_start ${acted} step_end step_start upp step_end`,
    `step_start upp reasoning ${acted} step_end step_start upp reasoning upp step_end`,
    `step_start upp plan_created step_end step_start plan_step_start ${acted} upp plan_step_end step_end`,
  ])
})

test('UAP-146 a step of plan() says which phase it is', async () => {
  const { execution, script } = strategies[2]!
  const events = await collect(
    agent({ model: scripted(script), tools: [add], execution }).stream('x', start),
  )
  expect(events.flatMap(({ uap }) => (uap?.type === 'step_start' ? [uap.data] : []))).toEqual([
    { phase: 'plan' },
    { phase: 'execute' },
  ])
})

test('UPP-034 errors of the agent layer name a provider and the modality', async () => {
  const wrong = agent({ model: scripted([]) }).generate('x', {} as AgentState)
  await expect(wrong).rejects.toMatchObject({
    name: 'UPPError',
    code: 'INVALID_REQUEST',
    provider: expect.any(String),
    modality: 'llm',
  })
})

test('UAP-147 events of the model are its own objects', async () => {
  const delta = { type: 'text_delta', index: 0, delta: { text: 'hi' } } as const
  const block = { type: 'content_block_start', index: 0, delta: { block: 'text' } } as const
  const stop = { type: 'content_block_stop', index: 0, delta: {} } as const
  const empty = { type: 'text_delta', index: 0, delta: { text: '' } } as const
  const sent = [block, empty, delta, empty, stop]
  const events = await collect(agent({ model: scripted([emits(...sent)]) }).stream('x', start))
  // All of them, in their order, between the start and the end of the message.
  const own = events.flatMap(({ upp }) => upp ?? []).slice(1, -1)
  expect(own).toHaveLength(sent.length)
  own.forEach((event, index) => expect(event).toBe(sent[index]))
})

test('UAP-149 UAP-150 an answer that is no plan is in the state, and the model sees it when it is asked again', async () => {
  for (const streaming of [false, true]) {
    const model = scripted([says('no plan'), planned, adding, says('ok')])
    const worker = agent({ model, tools: [add], execution: plan() })
    const { state, turn } = await (streaming
      ? worker.stream('x', start).result
      : worker.generate('x', start))
    expect(state.messages).toEqual(turn.messages)
    const texts = (messages: readonly { readonly text?: string }[]) =>
      messages.map(({ text }) => text)
    expect(texts(state.messages as never)).toContain('no plan')
    expect(texts(model.requests[1]!.messages as never)).toContain('no plan')
  }
})

test('UAP-146 the data of each event is what its type promises', async () => {
  const { execution, script } = strategies[1]!
  const events = await collect(
    agent({ model: scripted(script), tools: [add], execution }).stream('x', start),
  )
  const data = (type: UAPEventType) =>
    events.flatMap(({ uap }) => (uap?.type === type ? [uap.data] : []))
  expect(data('step_start')).toEqual([{}, {}])
  expect(data('reasoning')).toEqual([{ reasoning: 't' }, { reasoning: 't' }])
  expect(data('action')).toMatchObject([{ toolCalls: [{ toolName: 'add' }] }])
  expect(data('observation')).toMatchObject([{ observations: [{ toolName: 'add', result: 2 }] }])
  expect(data('step_end')).toMatchObject([
    { usage: { totalTokens: expect.any(Number) } },
    { stopReason: 'complete' },
  ])
})

describe('abort', () => {
  const heard: string[] = []
  /** What happens when a tool or a model has begun. */
  let begun: () => void
  const waiting = (run: (signal: AbortSignal) => Promise<never>): Tool => ({
    ...add,
    run: (_: unknown, { signal }: { signal: AbortSignal }) => {
      begun()
      return run(signal)
    },
  })
  const listening = waiting(
    (signal) => new Promise(() => signal.addEventListener('abort', () => heard.push('tool'))),
  )
  const deaf = waiting(() => new Promise(() => {}))
  const late = waiting(
    () => new Promise((_, reject) => setTimeout(() => reject(new Error('late')), 30)),
  )
  /** Whether it settled before a timer of 50 ms that began with the abort; a busy machine delays both. */
  const settles = async (worker: Agent, mode: 'generate' | 'stream'): Promise<boolean> => {
    const controller = new AbortController()
    let isLate = false
    let timer: ReturnType<typeof setTimeout> | undefined
    const abort = (): void => {
      timer = setTimeout(() => (isLate = true), 50)
      controller.abort('enough')
    }
    begun = () => setTimeout(abort, 10)
    const options = { signal: controller.signal }
    const run =
      mode === 'generate'
        ? worker.generate('x', start, options)
        : worker.stream('x', start, options).result
    await expect(run).rejects.toMatchObject({ name: 'UPPError', code: 'CANCELLED' })
    clearTimeout(timer)
    return !isLate
  }

  test('UAP-152 reaches the provider and the tools, and settles within 50 ms even if they are deaf', async () => {
    for (const mode of ['generate', 'stream'] as const)
      for (const { execution, script } of strategies)
        for (const tool of [listening, deaf, late]) {
          const model = scripted(script)
          expect(await settles(agent({ model, tools: [tool], execution }), mode)).toBe(true)
        }
    expect(heard).toHaveLength(6)
    const model = scripted(() => {
      begun()
      return waits(Infinity)
    })
    expect(await settles(agent({ model }), 'generate')).toBe(true)
    expect(model.requests[0]!.signal.aborted).toBe(true)
  })

  test('UAP-152 an aborted signal starts nothing', async () => {
    const model = scripted([says('never')])
    const run = agent({ model }).generate('x', start, { signal: AbortSignal.abort() })
    await expect(run).rejects.toMatchObject({ code: 'CANCELLED' })
    expect(model.requests).toHaveLength(0)
  })

  test('what an aborted run left is a state to continue with', async () => {
    const worker = agent({ model: scripted([adding, adding]), tools: [add] })
    const stream = worker.stream('x', start)
    for await (const { upp } of stream)
      if (upp?.type === 'tool_execution_end' && stream.state.step === 1) break
    await stream.result.catch(() => {})
    const { state } = stream
    const model = scripted([says('fine')])
    const next = await agent({ ...worker, model }).generate('continue', state)
    expect(next.turn.response.text).toBe('fine')
    expect(model.requests[0]!.messages.map(({ type }) => type)).toEqual([
      'user',
      'assistant',
      'tool_result',
      'user',
    ])
  })
})

describe('steering', () => {
  test('a message comes in before the next inference', async () => {
    const model = scripted([adding, says('done')])
    const stream = agent({ model, tools: [add] }).stream('x', start)
    for await (const { uap } of stream) if (uap?.type === 'action') stream.steer('Be quick.')
    const { state } = await stream.result
    expect(model.requests[1]!.messages.map(({ type }) => type)).toEqual([
      'user',
      'assistant',
      'tool_result',
      'user',
    ])
    expect(state.messages.filter(isUserMessage).map(({ text }) => text)).toEqual(['x', 'Be quick.'])
    expect(state.step).toBe(2)
  })

  test('a message is taken as it is; after the last step there is nothing left to steer', async () => {
    const stream = agent({ model: scripted([adding, says('done')]), tools: [add] }).stream(
      'x',
      start,
    )
    const own = new UserMessage('mine')
    const late: unknown[] = []
    for await (const { uap } of stream) {
      if (uap?.type === 'action') stream.steer(own)
      if (uap?.type !== 'step_end') continue
      try {
        if (uap.data.stopReason !== undefined) stream.steer('too late')
      } catch (error) {
        late.push(error)
      }
    }
    expect(late).toMatchObject([{ code: 'INVALID_REQUEST' }])
    const { state } = await stream.result
    expect(state.messages.filter(isUserMessage)[1]).toBe(own)
    expect(state.messages.map(({ text }) => text)).not.toContain('too late')
    expect(() => stream.steer('later')).toThrow(/is over/)
  })

  test.each(strategies)(
    'keeps a run alive that was about to end ($name)',
    async ({ execution, script }) => {
      const model = scripted([...script, says('t'), says('t'), says('t')])
      const stream = agent({ model, tools: [add], execution }).stream('x', start)
      let steered = false
      for await (const { upp } of stream)
        if (!steered && upp?.type === 'message_stop' && model.requests.length === script.length) {
          steered = true
          stream.steer('One more thing.')
        }
      const { state, stopReason, turn } = await stream.result
      expect(stopReason).toBe('complete')
      expect(state.step).toBe(3)
      expect(turn.messages.some(({ text }) => text === 'One more thing.')).toBe(true)
      expect(state.messages.at(-1)?.text).toBe('t')
    },
  )
})

test('a failure comes out of the loop and of the result', async () => {
  const stream = agent({ model: scripted([fails('broken')]) }).stream('x', start)
  const events: AgentStreamEvent[] = []
  await expect(
    (async () => {
      for await (const event of stream) events.push(event)
    })(),
  ).rejects.toThrow('broken')
  await expect(stream.result).rejects.toThrow('broken')
  expect(events[0]?.uap?.type).toBe('step_start')
})
