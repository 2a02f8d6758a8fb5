import { agent, AgentState, type AgentContext } from '@skein/agents'
import { AssistantMessage, ToolResultMessage, UserMessage } from '@skein/ai'
import { calls, says, scripted, stops } from '@skein/ai/testing'
import { describe, expect, test } from 'vitest'

describe('UAP-088 every field refuses what JSON cannot hold, at its path', () => {
  const cycle: Record<string, unknown> = {}
  cycle['self'] = cycle
  const wrong = [Number.NaN, Infinity, -Infinity, 1n, () => 1, Symbol('s'), new Date(0), cycle]
  const step = { id: 'p', description: 'd', dependsOn: [], status: 'pending' }
  const trace = { subagentId: 's', prompt: 'p', success: true }
  const fields: Readonly<Record<string, (value: never) => AgentState>> = {
    'metadata.a[0].b': (value) => AgentState.initial().withMetadata('a', [{ b: value }]),
    'plan[0].tool': (value) => AgentState.initial().withPlan([{ ...step, tool: value } as never]),
    'subagentTraces[1].usage.costUsd': (value) =>
      AgentState.initial()
        .withSubagentTrace(trace as never)
        .withSubagentTrace({ ...trace, usage: { costUsd: value } } as never),
    'suspension.deferred[0].request.request': (value) =>
      AgentState.initial().withSuspension({
        deferred: [{ toolCallId: 'c', request: { kind: 'input', request: value } }],
      }),
    'reasoning[1]': (value) => AgentState.initial().withReasoning('r').withReasoning(value),
    'run.usage.cacheReadTokens': (value) =>
      AgentState.initial().withRun({ id: 'r', usage: { cacheReadTokens: value } } as never),
  }

  test.each(Object.entries(fields))('UAP-088 %s', (path, stateWith) => {
    for (const value of wrong)
      expect(() => stateWith(value as never).toJSON(), String(value)).toThrow(
        expect.objectContaining({
          code: 'INVALID_REQUEST',
          message: expect.stringContaining(`JSON: ${path}`),
        }),
      )
  })
})

/** A state of values that are easily lost: empty, falsy, the same object twice, data that looks like bytes. */
function oddState(): AgentState {
  const at = (id: string) => ({
    id,
    timestamp: new Date('2001-02-03T04:05:06.007Z'),
    metadata: { own: {}, text: 'not an object' as never },
  })
  const call = { toolCallId: ' c ', toolName: '', arguments: { $bytes: 'AQ==', one: [] } }
  const shared = { zero: 0, no: false, none: null, empty: '', list: [], object: {} }
  const results = [
    { toolCallId: ' c ', toolName: 't', result: null, isError: false },
    { toolCallId: 'd', result: [Uint8Array.of(7)], isError: true },
  ]
  const usage = {
    inputTokens: 0,
    outputTokens: 0,
    totalTokens: 0,
    cacheReadTokens: 0,
    cacheWriteTokens: 0,
  }
  const counts = { revision: 3, steps: 2, subagentSteps: 1, durationMs: 12 }
  const unknown = { future: { a: [null] } }
  return AgentState.fromJSON({ ...AgentState.initial().toJSON(), ...unknown })
    .withMessages([
      new UserMessage([], at('u')),
      new UserMessage('without metadata', { id: 'm', timestamp: new Date(5) }),
      new AssistantMessage([], [], at('a')),
      new AssistantMessage('', [call], at('b')),
      new ToolResultMessage(results, at('r')),
      new ToolResultMessage([], at('s')),
    ])
    .withMetadata('one', shared)
    .withMetadata('two', [shared, shared])
    .withReasoning('')
    .withReasoning('r')
    .withPlan([])
    .withRun({ id: '', ...counts, usage, subagentUsage: usage })
    .withSuspension({ answered: new ToolResultMessage(results, at('known')), deferred: [] })
}

test('UAP-088 UAP-089 UAP-154 what is empty, falsy or used twice is restored as it was', () => {
  const state = oddState()
  const request = { kind: 'input', request: null } as const
  const waiting = state.withSuspension({
    deferred: [
      { toolCallId: 'e', request, answer: { type: 'approve' } },
      { toolCallId: 'f', request, answers: { x: { type: 'deny', reason: '' } } },
    ],
  })
  for (const one of [state, waiting]) {
    const text = JSON.stringify(one)
    const restored = AgentState.fromJSON(JSON.parse(text))
    expect(JSON.stringify(restored)).toBe(text)
    expect(restored).toEqual(one)
    expect(restored.messages).toEqual(one.messages)
    expect(restored.messages.map(({ timestamp }) => timestamp.getTime())).toEqual(
      one.messages.map(({ timestamp }) => timestamp.getTime()),
    )
    expect(restored.reasoning).toEqual(['', 'r'])
  }
  expect(JSON.parse(JSON.stringify(state))).toMatchObject({
    future: { a: [null] },
    plan: [],
    suspension: { answered: { id: 'known' }, deferred: [] },
  })
})

test('UAP-087 states that come from a restored one have ids of their own', () => {
  const restored = AgentState.fromJSON(JSON.parse(JSON.stringify(AgentState.initial())))
  const states = [restored, restored.withStep(1), restored.withStep(1), restored.withReasoning('')]
  expect(new Set(states.map(({ id }) => id)).size).toBe(4)
})

test('UAP-086 a list belongs to its caller: neither side sees later changes of the other', () => {
  const [one, two] = [new UserMessage('one'), new UserMessage('two')]
  const own = [one]
  const states = [AgentState.initial().withContext(own), AgentState.initial().withMessages(own)]
  for (const state of states) state.withMessage(two)
  expect(own).toEqual([one])
  own.push(two)
  for (const state of states) expect(state.messages).toEqual([one])
})

test('UAP-153 a step of a plan may leave out what it depends on', () => {
  const step = { id: 'p', description: 'd', status: 'pending' }
  const state = AgentState.fromJSON({ ...AgentState.initial().toJSON(), plan: [step] })
  expect(state.plan).toEqual([{ ...step, dependsOn: [] }])
  expect(state.toJSON().plan).toEqual(state.plan)
})

test('UAP-169 a key named __proto__ is dropped from what the application stores, at every depth', () => {
  const evil: unknown = JSON.parse('{"__proto__":{"bad":1},"list":[{"__proto__":{"bad":1}}]}')
  const state = AgentState.initial()
    .withMetadata('x', evil)
    .withPlan([evil as never])
    .withSubagentTrace({ usage: evil } as never)
  const [step, trace] = [state.plan![0], state.subagentTraces[0]!.usage]
  type Read = { readonly bad?: 1; readonly list: readonly { readonly bad?: 1 }[] }
  for (const one of [state.metadata['x'], step, trace] as unknown as readonly Read[]) {
    expect([one.bad, one.list[0]!.bad]).toEqual([undefined, undefined])
    expect(Object.getPrototypeOf(one)).toBe(Object.prototype)
  }
  expect(JSON.stringify([state.metadata, state.plan, state.subagentTraces])).not.toContain('bad')
})

test('UAP-088 UAP-089 UAP-166 counts that a provider or a tool leaves out are zero, and the state can be restored', async () => {
  const usage = { inputTokens: 2, outputTokens: 1, totalTokens: 3 }
  const gaps = { cacheReadTokens: undefined, cacheWriteTokens: undefined }
  const whole = { ...usage, cacheReadTokens: 0, cacheWriteTokens: 0 }
  const identity = { subagentId: 's', subagentType: 't', parentToolCallId: 'c' }
  const ends = [
    { success: true, result: { found: [1] }, usage: gaps },
    { success: false, error: { code: 7 }, usage: { totalTokens: 5 } },
    { success: true, result: '', usage },
  ]
  const look = {
    name: 'look',
    description: 'd',
    parameters: { type: 'object' },
    run: (_: unknown, { onSubagentEvent }: AgentContext) => {
      for (const end of ends)
        onSubagentEvent({ type: 'subagent_end', ...identity, ...end, timestamp: 1 } as never)
    },
  }
  const counted = stops('end_turn', { usage: { ...usage, ...gaps } })
  const model = scripted([[calls('look'), stops('tool_use', { usage: { ...usage, ...gaps } })], [says('ok'), counted]]) // prettier-ignore
  const { state, turn } = await agent({ model, tools: [look] }).generate('x', AgentState.initial())
  const restored = AgentState.fromJSON(JSON.parse(JSON.stringify(state)))
  expect(restored).toEqual(state)
  expect(restored.toJSON()).toEqual(state.toJSON())
  const sum = { ...whole, inputTokens: 4, outputTokens: 2, totalTokens: 6 }
  expect(restored.run).toMatchObject({
    usage: sum,
    subagentUsage: { ...whole, totalTokens: 8 },
  })
  expect(turn.usage).toEqual(sum)
  const zero = { inputTokens: 0, outputTokens: 0, totalTokens: 0 }
  expect(restored.subagentTraces).toMatchObject([
    { result: '{"found":[1]}', usage: { ...whole, ...zero } },
    { error: '{"code":7}', usage: { ...whole, ...zero, totalTokens: 5 } },
    { result: '', usage: whole },
  ])
})

test('UAP-089 UAP-155 members that this version does not know are kept in every part of a state', () => {
  const later = { later: { list: [null, { a: 0 }] } }
  const counts = { inputTokens: 1, outputTokens: 2, totalTokens: 3, ...later }
  const trace = {
    subagentId: 's',
    subagentType: 't',
    parentToolCallId: 'c',
    prompt: 'p',
    startTime: 1,
    endTime: 2,
    success: true,
    ...later,
  }
  const execution = { toolName: 'get', arguments: later, result: 'r', ...later }
  const message = { timestamp: '2001-02-03T04:05:06.007Z', metadata: { own: later } }
  const call = { toolCallId: 'c', toolName: 'get', arguments: later, metadata: later, ...later }
  const result = { toolCallId: 'c', toolName: 'get', result: later, isError: false, ...later }
  const text = { type: 'text', text: '', metadata: { own: later } }
  const json = {
    ...AgentState.initial().toJSON(),
    ...later,
    metadata: later,
    messages: [
      { type: 'user', id: 'u', content: [text, { ...text, ...later }], ...message },
      { type: 'assistant', id: 'a', content: [text], toolCalls: [call], ...message },
      { type: 'tool_result', id: 'r', content: [], results: [result], ...message },
    ],
    plan: [{ id: 'p', description: 'd', dependsOn: [], status: 'pending', ...later }],
    subagentTraces: [
      { ...trace, usage: counts, toolExecutions: [execution], children: [trace] },
      trace,
    ],
    suspension: {
      answered: { type: 'tool_result', id: 'k', content: [], results: [result], ...message },
      deferred: [
        { toolCallId: 'd', request: { kind: 'input', request: later, ...later }, answer: later },
        { toolCallId: 'e', request: { kind: 'input', request: 0 }, answers: later, ...later },
      ],
    },
    run: {
      id: 'r',
      revision: 0,
      steps: 0,
      subagentSteps: 0,
      durationMs: 0,
      usage: counts,
      subagentUsage: counts,
      ...later,
    },
  }
  expect(AgentState.fromJSON(json).toJSON()).toEqual(json)
})
