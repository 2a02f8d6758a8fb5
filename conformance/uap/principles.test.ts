import { agent, AgentState, subagent, type Agent } from '@skein/agents'
import { loop, plan, react } from '@skein/agents/execution'
import { defer, UserMessage, type Tool } from '@skein/ai'
import { calls, fails, says, scripted, waits } from '@skein/ai/testing'
import { describe, expect, test, vi } from 'vitest'
import { custom } from './support/custom-strategy.ts'
import { recordingStore } from './support/state.ts'
import { add } from './support/tools.ts'

const adding = calls('add', { a: 1, b: 1 })
const rounds = (count: number) => [...Array.from({ length: count }, () => adding), says('done')]

describe('states', () => {
  const full = AgentState.initial()
    .withMessage(new UserMessage('hi'))
    .withMetadata('deep', { list: [{ x: 1 }] })
    .withReasoning('because')
    .withPlan([{ id: 'a', description: 'A', dependsOn: [], status: 'pending' }])
    .withSubagentTrace({
      subagentId: 's',
      subagentType: 't',
      parentToolCallId: 'c',
      prompt: 'p',
      startTime: 1,
      endTime: 2,
      success: true,
    })

  test('UAP-012 UAP-086 nothing in a state can be changed, and 50 operations leave it as it was', () => {
    const before = JSON.stringify(full)
    const attempts: (() => void)[] = [
      () => ((full as { step: number }).step = 9),
      () => ((full as { messages: unknown }).messages = []),
      () => void (full.messages as unknown[]).push(1),
      () => ((full.messages as unknown[])[0] = 1),
      () => ((full.messages[0] as { id: string }).id = 'x'),
      () => ((full.metadata as Record<string, unknown>)['a'] = 1),
      () => ((full.metadata['deep'] as { list: { x: number }[] }).list[0]!.x = 2),
      () => void (full.metadata['deep'] as { list: unknown[] }).list.push(1),
      () => void (full.reasoning as string[]).push('x'),
      () => void (full.plan as unknown[]).pop(),
      () => ((full.plan![0] as { status: string }).status = 'failed'),
      () => void (full.plan![0]!.dependsOn as string[]).push('x'),
      () => ((full.subagentTraces[0] as { prompt: string }).prompt = 'x'),
      () => void (full.subagentTraces as unknown[]).pop(),
    ]
    for (const attempt of attempts) expect(attempt, String(attempt)).toThrow(TypeError)
    let next = full
    for (let i = 0; i < 50; i++)
      next = next
        .withMessage(new UserMessage(`${i}`))
        .withReasoning('r')
        .withStep(i)
        .withMetadata('deep', i)
    expect(JSON.stringify(full)).toBe(before)
    expect(next.messages).toHaveLength(51)
    expect(full.messages).toHaveLength(1)
    // Two states made from the same one, before its list is read, do not see each other.
    const base = full.withMessage(new UserMessage('base'))
    const [left, right] = ['left', 'right'].map((text) => base.withMessage(new UserMessage(text)))
    const textsOf = (state?: AgentState): string[] => state!.messages.map(({ text }) => text)
    expect(textsOf(right)).toEqual(['hi', 'base', 'right'])
    expect(textsOf(left)).toEqual(['hi', 'base', 'left'])
    expect(textsOf(base)).toEqual(['hi', 'base'])
  })

  test('UAP-013 a run does not change the state it was given: on success, error and abort', async () => {
    const before = JSON.stringify(full)
    await agent({ model: scripted(rounds(2)), tools: [add] }).generate('x', full)
    await agent({ model: scripted(rounds(2)), tools: [add] }).ask('x', full)
    await agent({ model: scripted(rounds(2)), tools: [add] }).stream('x', full).result
    await agent({ model: scripted([adding, fails()]), tools: [add] })
      .generate('x', full)
      .catch(() => {})
    const stream = agent({ model: scripted([adding, waits(Infinity)]), tools: [add] }).stream(
      'x',
      full,
    )
    setTimeout(() => stream.abort(), 5)
    await stream.result.catch(() => {})
    expect(JSON.stringify(full)).toBe(before)
  })
})

test('UAP-014 what the model sees comes from the state that was passed, and from nothing else', async () => {
  const model = scripted(() => says('ok'))
  const worker = agent({ model })
  let one = AgentState.initial()
  let two = AgentState.initial()
  for (let i = 0; i < 3; i++) {
    one = (await worker.generate(`one ${i}`, one)).state
    two = (await worker.generate(`two ${i}`, two)).state
  }
  const sent = model.requests.map(({ messages }) => messages.map(({ text }) => text).join('|'))
  expect(sent[4]).toBe('one 0|ok|one 1|ok|one 2')
  expect(sent[5]).toBe('two 0|ok|two 1|ok|two 2')
  expect(
    sent
      .slice(0, 5)
      .filter((_, i) => i % 2 === 0)
      .join(),
  ).not.toContain('two')
})

test('UAP-014 everything react sent is in the state', async () => {
  const model = scripted([says('think'), adding, says('think'), says('two')])
  const { state } = await agent({ model, tools: [add], execution: react() }).generate(
    'x',
    AgentState.initial(),
  )
  const known = new Set(state.messages.map(({ id }) => id))
  for (const { messages } of model.requests)
    expect(messages.every(({ id }) => known.has(id))).toBe(true)
  expect(model.requests.at(-1)!.messages.map(({ id }) => id)).toEqual(
    state.messages.slice(0, -1).map(({ id }) => id),
  )
})

test('UAP-015 two runs from one state know nothing of each other', async () => {
  const model = scripted(({ messages }) => says(`to ${messages.at(-1)!.text}`))
  const worker = agent({ model })
  const { state: s1 } = await worker.generate('start', AgentState.initial())
  const [a, b] = await Promise.all([worker.generate('A', s1), worker.generate('B', s1)])
  expect(a.state.messages.map(({ text }) => text)).toEqual(['start', 'to start', 'A', 'to A'])
  expect(b.state.messages.map(({ text }) => text)).toEqual(['start', 'to start', 'B', 'to B'])
})

test('UAP-016 an agent spread into other options keeps everything but its id', async () => {
  const model = scripted([says('think'), says('{"n":1}')])
  const log: string[] = []
  const first = agent({
    model,
    tools: [add],
    system: 'Be brief.',
    params: { temperature: 0 },
    config: { headers: { 'x-a': 'b' } },
    structure: { type: 'object' },
    toolStrategy: { onToolCall: () => {} },
    middleware: [{ name: 'm', before: () => void log.push('middleware') }],
    strategy: { onStepStart: () => void log.push('hook') },
    sessionId: 'mine',
  })
  const second = agent({ ...first, execution: react() })
  expect(second.id).not.toBe(first.id)
  for (const key of [
    'model',
    'system',
    'params',
    'config',
    'structure',
    'middleware',
    'strategy',
  ] as const)
    expect(second[key], key).toBe(first[key])
  expect(second.tools).toEqual(first.tools)
  expect(second.sessionId).toBe('mine')
  const { turn } = await second.generate('x', AgentState.initial())
  expect(turn.cycles).toBe(2)
  expect(turn.data).toEqual({ n: 1 })
  expect(log).toEqual(['middleware', 'hook'])
  expect(model.requests[1]).toMatchObject({ system: 'Be brief.', params: { temperature: 0 } })
  const stored = agent({ model, checkpoints: recordingStore() })
  expect('sessionId' in stored).toBe(false)
})

describe('limits', () => {
  test('UAP-017 UAP-018 UAP-020 300 rounds end by themselves, whatever the tool strategy leaves out', async () => {
    for (const toolStrategy of [undefined, { onToolCall: () => {} }]) {
      const worker = agent({
        model: scripted(rounds(300)),
        tools: [add],
        execution: loop(),
        ...(toolStrategy && { toolStrategy }),
      })
      const { turn, state, stopReason } = await worker.generate('x', AgentState.initial())
      expect(turn.toolExecutions).toHaveLength(300)
      expect(state.step).toBe(301)
      expect(stopReason).toBe('complete')
    }
  })

  test('UAP-018 a run that has counted any number of steps continues with the next', async () => {
    const approval = () => defer({ kind: 'approval', request: null })
    const asks: Tool = { ...add, name: 'asks', approval }
    for (const execution of [undefined, loop(), loop({})]) {
      const model = scripted([calls('asks', { a: 1, b: 1 }), adding, says('done')])
      const worker = agent({ model, tools: [asks, add], ...(execution && { execution }) })
      const paused = await worker.generate('x', AgentState.initial())
      expect(paused.stopReason).toBe('interrupted')
      const json = paused.state.toJSON()
      const steps = Number.MAX_SAFE_INTEGER - 10
      const state = AgentState.fromJSON({ ...json, run: { ...json.run, steps } })
      const id = paused.interrupts![0]!.id
      const { stopReason, turn } = await worker.resume(state, { [id]: { type: 'approve' } })
      expect([stopReason, turn.response.text]).toEqual(['complete', 'done'])
    }
  })

  test('UAP-020 nor is there a limit where a strategy of the application lets the model run its tools', async () => {
    for (const toolStrategy of [undefined, {}, { onToolCall: () => {} }]) {
      const worker = agent({
        model: scripted(rounds(15)),
        tools: [add],
        execution: custom(),
        ...(toolStrategy && { toolStrategy }),
      })
      const { turn } = await worker.generate('x', AgentState.initial())
      expect(turn.toolExecutions).toHaveLength(15)
      expect(turn.response.text).toBe('done')
    }
  })

  test('UAP-019 UAP-064 react has no limit of its own', async () => {
    const script = [
      ...Array.from({ length: 60 }, () => [says('continue'), adding]).flat(),
      says('t'),
      says('end'),
    ]
    const { state } = await agent({
      model: scripted(script),
      tools: [add],
      execution: react(),
    }).generate('x', AgentState.initial())
    expect(state.step).toBe(61)
  })

  test.each(['generate', 'stream', 'ask', 'query', 'resume', 'resumeStream'] as const)(
    'UAP-021 no timer runs while a provider is silent (%s)',
    async (form) => {
      const state = AgentState.initial().withMessage(new UserMessage('x'))
      for (const execution of [loop(), react(), plan()]) {
        vi.useFakeTimers()
        try {
          let settled = false
          const controller = new AbortController()
          const { signal } = controller
          const own = agent({ model: scripted([waits(Infinity)]), execution })
          const forms = {
            generate: () => own.generate('x', AgentState.initial(), { signal }),
            stream: () => own.stream('x', AgentState.initial(), { signal }).result,
            ask: () => own.ask('x', AgentState.initial(), { signal }),
            query: () => own.query('x', { signal }),
            resume: () => own.resume(state, {}, { signal }),
            resumeStream: () => own.resumeStream(state, {}, { signal }).result,
          }
          const result = forms[form]()
            .catch(() => {})
            .then(() => (settled = true))
          await vi.advanceTimersByTimeAsync(1_000_000)
          expect(vi.getTimerCount()).toBe(0)
          expect(settled).toBe(false)
          controller.abort()
          await result
          expect(settled).toBe(true)
        } finally {
          vi.useRealTimers()
        }
      }
    },
  )

  test('UAP-022 limits that are given hold', async () => {
    const run = (options: Partial<Agent>, script = rounds(9)) =>
      agent({ model: scripted(script), tools: [add], ...options }).generate(
        'x',
        AgentState.initial(),
      )
    const looped = await run({ execution: loop({ maxIterations: 2 }) })
    expect([looped.turn.toolExecutions.length, looped.stopReason]).toEqual([2, 'max_iterations'])
    const thinking = Array.from({ length: 9 }, () => [says('t'), adding]).flat()
    const reacted = await run({ execution: react({ maxSteps: 2 }) }, thinking)
    expect([reacted.turn.toolExecutions.length, reacted.stopReason]).toEqual([2, 'max_steps'])
    const bounded = await run({ toolStrategy: { maxIterations: 2 } })
    expect([bounded.turn.toolExecutions.length, bounded.stopReason]).toEqual([2, 'max_iterations'])
    const stopped = await run({ strategy: { stopCondition: ({ step }) => step === 2 } })
    expect([stopped.turn.toolExecutions.length, stopped.stopReason]).toEqual([2, 'stop_condition'])
  })

  test('the stricter of two limits wins', async () => {
    for (const [own, tools] of [
      [2, 5],
      [5, 2],
    ] as const) {
      const { turn } = await agent({
        model: scripted(rounds(9)),
        tools: [add],
        execution: loop({ maxIterations: own }),
        toolStrategy: { maxIterations: tools },
      }).generate('x', AgentState.initial())
      expect(turn.toolExecutions).toHaveLength(2)
    }
  })
})

test('UAP-023 no schema is made from an agent', () => {
  const child = agent({ model: scripted([]) })
  expect('toTool' in child).toBe(false)
  const whole = {
    name: 'n',
    description: 'd',
    parameters: { type: 'object' },
    agent: child,
    prompt: () => 'p',
  }
  expect(subagent(whole)).toMatchObject({
    name: 'n',
    description: 'd',
    parameters: { type: 'object' },
  })
  for (const key of ['name', 'description', 'parameters', 'agent', 'prompt'] as const) {
    const { [key]: _, ...rest } = whole
    expect(() => subagent(rest as typeof whole), key).toThrow(
      expect.objectContaining({ code: 'INVALID_REQUEST', message: expect.stringContaining(key) }),
    )
    for (const bad of ['', 7])
      expect(() => subagent({ ...whole, [key]: bad } as never), key).toThrow(
        expect.objectContaining({ code: 'INVALID_REQUEST', message: expect.stringContaining(key) }),
      )
  }
})

test('UAP-024 UAP-038 an agent among the tools is refused', () => {
  const child = agent({ model: scripted([]) })
  expect(() => agent({ model: scripted([]), tools: [child as unknown as Tool] })).toThrow(
    expect.objectContaining({
      code: 'INVALID_REQUEST',
      hint: expect.stringContaining('subagent('),
    }),
  )
  for (const item of [{}, { name: 'x' }, { run: () => 1 }, null, 'add', child])
    for (const others of [[], [add], [add, { ...add, name: 'other' }]])
      expect(() =>
        agent({ model: scripted([]), tools: [...others, item as unknown as Tool] }),
      ).toThrow(
        expect.objectContaining({
          code: 'INVALID_REQUEST',
          message: expect.stringContaining(`Item ${others.length} `),
        }),
      )
})
