import { AgentState, type PlanStep, type SubagentExecutionTrace } from '@skein/agents'
import { AssistantMessage, ToolResultMessage, UserMessage } from '@skein/ai'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'

const trace: SubagentExecutionTrace = {
  subagentId: 'sub-1',
  subagentType: 'explorer',
  parentToolCallId: 'call_1',
  prompt: 'look',
  startTime: 1,
  endTime: 5,
  success: true,
  result: 'found',
  toolExecutions: [
    { toolName: 't', arguments: { a: [1] }, result: '{}', isError: false, duration: 2 },
  ],
  usage: {
    inputTokens: 1,
    outputTokens: 2,
    totalTokens: 3,
    cacheReadTokens: 0,
    cacheWriteTokens: 0,
  },
}
const step: PlanStep = { id: 'a', description: 'A', dependsOn: [], status: 'pending' }
const one = new UserMessage('one')
const two = new AssistantMessage('two')
const three = new UserMessage('three')

test('UAP-080 a first state is empty', () => {
  const state = AgentState.initial()
  expect(state).toMatchObject({ step: 0, metadata: {} })
  expect([state.messages, state.reasoning, state.subagentTraces]).toEqual([[], [], []])
  expect('plan' in state).toBe(false)
  expect(() => new (AgentState as unknown as new () => AgentState)()).toThrow(
    'cannot be constructed',
  )
})

test('UAP-081 UAP-082 UAP-083 messages are appended, or replaced with all else kept', () => {
  const base = AgentState.initial()
    .withMetadata('k', 1)
    .withStep(3)
    .withReasoning('r')
    .withPlan([step])
  const appended = base.withMessage(one).withMessages([two, three])
  expect(appended.messages).toEqual([one, two, three])
  expect(appended.messages[0]).toBe(one)
  expect(appended.withMessage(one).messages).toEqual([one, two, three, one])
  expect(appended.withMessages([]).messages).toEqual([one, two, three])
  const replaced = appended.withContext([three])
  expect(replaced.messages).toEqual([three])
  expect(replaced).toMatchObject({ step: 3, metadata: { k: 1 }, plan: [step] })
  expect(replaced.reasoning).toEqual(['r'])
  expect(() => base.withMessage({} as never)).toThrow(
    expect.objectContaining({ code: 'INVALID_REQUEST' }),
  )
})

test('UAP-084 UAP-085 steps, metadata, reasoning, plan and traces', () => {
  const state = AgentState.initial()
    .withStep(2)
    .withMetadata('a', { b: [1] })
    .withMetadata('c', null)
    .withReasoning('x')
    .withReasoning('y')
    .withPlan([{ ...step, id: 'old' }])
    .withPlan([step])
    .withSubagentTrace(trace)
    .withSubagentTrace({ ...trace, subagentId: 'sub-2' })
  expect(state).toMatchObject({ step: 2, metadata: { a: { b: [1] }, c: null }, plan: [step] })
  expect(state.reasoning).toEqual(['x', 'y'])
  expect(state.subagentTraces.map(({ subagentId }) => subagentId)).toEqual(['sub-1', 'sub-2'])
  expect(state.withMetadata('a', undefined).metadata).toEqual({ c: null })
  expect(() => state.withStep(-1)).toThrow(expect.objectContaining({ code: 'INVALID_REQUEST' }))
})

test('UAP-085 what is put in is copied: changing it later changes nothing', () => {
  const value = { list: [1] }
  const own = { ...step, dependsOn: ['x'] }
  const state = AgentState.initial().withMetadata('v', value).withPlan([own])
  value.list.push(2)
  own.dependsOn.push('y')
  expect(state.metadata).toEqual({ v: { list: [1] } })
  expect(state.plan![0]!.dependsOn).toEqual(['x'])
})

const bytes = new Uint8Array([0, 1, 254, 255])
const everything = AgentState.initial()
  .withMessages([
    new UserMessage(
      [
        { type: 'text', text: 'hi' },
        { type: 'image', source: { type: 'bytes', data: bytes }, mimeType: 'image/png' },
        { type: 'audio', data: bytes, mimeType: 'audio/wav' },
        { type: 'video', data: bytes, mimeType: 'video/mp4' },
        { type: 'binary', data: bytes, mimeType: 'application/x' },
      ],
      { metadata: { app: { n: 1 } }, timestamp: new Date('2026-01-02T03:04:05.678Z') },
    ),
    new AssistantMessage('a', [{ toolCallId: 'c1', toolName: 't', arguments: { $bytes: 'no' } }]),
    new ToolResultMessage([{ toolCallId: 'c1', result: { deep: [bytes] }, isError: false }]),
  ])
  .withStep(4)
  .withMetadata('m', { list: [1, null, 'x'] })
  .withReasoning('r')
  .withPlan([step])
  .withSubagentTrace(trace)

describe('JSON', () => {
  test('UAP-088 UAP-157 UAP-156 is plain: bytes are base64, times ISO 8601', () => {
    const json = everything.toJSON()
    expect(JSON.parse(JSON.stringify(json))).toStrictEqual(json)
    const { plan: planned, reasoning, metadata, step: number } = everything
    expect(json).toMatchObject({ plan: planned, reasoning, metadata, step: number })
    expect(json.subagentTraces).toEqual(everything.subagentTraces)
    expect(json.messages).toHaveLength(everything.messages.length)
    expect(JSON.stringify(json)).toContain('AAH+/w==')
    for (const { timestamp } of json.messages)
      expect(timestamp).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
  })

  test('UAP-089 UAP-122 UAP-126 restores the exact state', () => {
    const restored = AgentState.fromJSON(JSON.parse(JSON.stringify(everything)))
    expect(restored.id).toBe(everything.id)
    expect(restored).toEqual(everything)
    expect(restored.messages).toEqual(everything.messages)
    expect(restored.messages.map((m) => m.constructor)).toEqual([
      UserMessage,
      AssistantMessage,
      ToolResultMessage,
    ])
    expect(restored.messages[0]!.timestamp).toEqual(new Date('2026-01-02T03:04:05.678Z'))
    expect(restored.messages[0]!.metadata).toEqual({ app: { n: 1 } })
    expect(restored.subagentTraces).toEqual([trace])
    expect(restored.reasoning).toEqual(['r'])
    expect(restored.toJSON()).toStrictEqual(everything.toJSON())
    expect(Object.isFrozen(restored.metadata['m'])).toBe(true)
  })

  test('UAP-088 what JSON cannot say fails loudly, naming the place', () => {
    const cycle: Record<string, unknown> = {}
    cycle['self'] = cycle
    const bad: [unknown, string][] = [
      [{ fn: () => 1 }, 'metadata.x.fn'],
      [[1n], 'metadata.x[0]'],
      [cycle, 'metadata.x.self'],
      [{ n: Number.NaN }, 'metadata.x.n'],
      [{ d: new Date() }, 'metadata.x.d'],
    ]
    for (const [value, path] of bad)
      expect(() => AgentState.initial().withMetadata('x', value).toJSON(), path).toThrow(
        expect.objectContaining({
          code: 'INVALID_REQUEST',
          message: expect.stringContaining(path),
        }),
      )
    const odd = new ToolResultMessage([
      { toolCallId: 'c', result: { at: new Date(0), no: undefined } },
    ])
    const json = AgentState.initial().withMessage(odd).toJSON()
    expect(JSON.parse(JSON.stringify(json))).toStrictEqual(json)
  })

  test('UAP-153 UAP-158 the least is enough to read; all that is there is written; the version is checked', () => {
    const minimal = { version: '1.7', id: 'x', messages: [], step: 0, metadata: {} }
    const state = AgentState.fromJSON(minimal)
    expect([state.reasoning, state.plan, state.subagentTraces]).toEqual([[], undefined, []])
    expect(Object.keys(everything.toJSON()).sort()).toEqual(
      [
        'id',
        'messages',
        'metadata',
        'plan',
        'reasoning',
        'step',
        'subagentTraces',
        'version',
      ].sort(),
    )
    expect(everything.toJSON().version).toBe('1.0.0')
    for (const version of ['2.0.0', '0.9', '', undefined, 1, '1.0.0-x'])
      expect(() => AgentState.fromJSON({ ...minimal, version })).toThrow('Unsupported UAP version')
  })

  test('UAP-088 a message that can still change is written as it is each time', () => {
    const open = { ...new UserMessage('x'), content: [{ type: 'text', text: 'before' }] }
    const state = AgentState.initial().withMessage(open as never)
    expect(JSON.stringify(state)).toContain('before')
    open.content[0]!.text = 'after'
    expect(JSON.stringify(state)).toContain('after')
  })

  test('fields that this version does not know are kept', () => {
    const json = {
      version: '1.4.0',
      id: 'x',
      messages: [],
      step: 0,
      metadata: {},
      future: { a: 1 },
    }
    const state = AgentState.fromJSON(json).withStep(1)
    expect(state.toJSON()).toMatchObject({ future: { a: 1 }, version: '1.0.0' })
  })

  test('UAP-169 hostile JSON is refused with a typed error, never half read', () => {
    const valid = JSON.parse(JSON.stringify(everything)) as Record<string, unknown>
    let nested: unknown = 1
    for (let i = 0; i < 20_000; i++) nested = [nested]
    const bad: unknown[] = [
      null,
      1,
      'x',
      [],
      { ...valid, metadata: nested },
      { ...valid, messages: {} },
    ]
    for (const field of [
      'id',
      'messages',
      'step',
      'metadata',
      'reasoning',
      'plan',
      'subagentTraces',
    ])
      for (const value of [null, 7.5, 'x', [null], [{}], { a: 1 }, -1]) {
        const changed = { ...valid, [field]: value }
        if (
          field === 'metadata' &&
          value !== null &&
          typeof value === 'object' &&
          !Array.isArray(value)
        )
          continue
        if (field === 'id' && value === 'x') continue
        bad.push(changed)
      }
    bad.push({
      ...valid,
      get id(): string {
        throw new Error('gotcha')
      },
    })
    for (const json of bad)
      expect(() => AgentState.fromJSON(json), JSON.stringify(Object(json)['step'])).toThrow(
        expect.objectContaining({ name: 'UPPError', code: 'INVALID_REQUEST' }),
      )
  })

  test('UAP-169 a key named __proto__ is dropped, and nothing is polluted', () => {
    const text = `{"version":"1.0.0","id":"x","messages":[],"step":0,"metadata":{"__proto__":{"bad":1},"a":{"__proto__":{"bad":1}}},"__proto__":{"bad":1}}`
    const state = AgentState.fromJSON(JSON.parse(text))
    expect((state.metadata as { bad?: unknown }).bad).toBeUndefined()
    expect((state.metadata['a'] as { bad?: unknown }).bad).toBeUndefined()
    expect(({} as { bad?: unknown }).bad).toBeUndefined()
    expect(JSON.stringify(state)).not.toContain('bad')
  })

  test('UAP-169 random damage never gives anything but a state or a typed error', () => {
    const text = JSON.stringify(everything)
    fc.assert(
      fc.property(fc.nat(text.length - 1), fc.string({ maxLength: 3 }), (at, patch) => {
        let json: unknown
        try {
          json = JSON.parse(text.slice(0, at) + patch + text.slice(at + patch.length))
        } catch {
          return
        }
        try {
          expect(AgentState.fromJSON(json).toJSON()).toBeDefined()
        } catch (error) {
          expect(error).toMatchObject({ name: 'UPPError', code: 'INVALID_REQUEST' })
        }
      }),
      { seed: 7, numRuns: process.env['SKEIN_DEEP'] ? 20_000 : 500 },
    )
  })
})

test('UAP-012 20,000 appends are all kept, and branches do not see each other', () => {
  const message = new UserMessage('x')
  let state = AgentState.initial()
  for (let i = 0; i < 20_000; i++) state = state.withMessage(message)
  expect(state.messages).toHaveLength(20_000)
  const base = AgentState.initial().withMessage(one)
  const left = base.withMessage(two)
  const right = base.withMessage(three)
  expect([base.messages, left.messages, right.messages]).toEqual([[one], [one, two], [one, three]])
})

test('the same ids make the same states', () => {
  const make = () => {
    let count = 0
    return AgentState.initial({ ids: () => `id-${++count}` })
      .withStep(1)
      .withMetadata('a', 1)
  }
  expect(make().toJSON()).toEqual(make().toJSON())
  expect(make().id).toBe('id-3')
})
