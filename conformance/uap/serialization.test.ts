import { agent, AgentState, type AgentStateJSON } from '@skein/agents'
import { scriptedAgent } from '@skein/agents/testing'
import {
  AssistantMessage,
  isAssistantMessage,
  isToolResultMessage,
  isUPPError,
  ToolResultMessage,
  UserMessage,
  type Message,
} from '@skein/ai'
import { calls, says } from '@skein/ai/testing'
import { encodeBase64 } from '@skein/base'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { uuidV4 } from './support/state.ts'

const bytes = Uint8Array.of(0, 1, 127, 128, 255)
const throughText = (state: AgentState): AgentStateJSON =>
  JSON.parse(JSON.stringify(state)) as AgentStateJSON

function richState(): AgentState {
  const call = { toolCallId: 'toolu_01', toolName: 'look', arguments: { at: 'sky' } }
  const metadata = { anthropic: { cache_control: { type: 'ephemeral' } }, own: { n: 1.5 } }
  return AgentState.initial()
    .withMessages([
      new UserMessage(
        [
          { type: 'text', text: 'look' },
          { type: 'image', source: { type: 'bytes', data: bytes }, mimeType: 'image/png' },
          { type: 'audio', data: bytes, mimeType: 'audio/wav' },
          { type: 'video', data: bytes, mimeType: 'video/mp4' },
          { type: 'binary', data: bytes, mimeType: 'application/zip' },
        ],
        { metadata, timestamp: new Date('2026-01-02T03:04:05.678Z') },
      ),
      new AssistantMessage([{ type: 'reasoning', text: 'hm', metadata }], [{ ...call, metadata }]),
      new ToolResultMessage([
        { toolCallId: 'toolu_01', toolName: 'look', result: { photo: bytes } },
      ]),
      new AssistantMessage('blue'),
    ])
    .withStep(2)
    .withMetadata('user', { name: 'Ada', tags: ['a', null, true] })
    .withReasoning('because')
    .withPlan([{ id: 'p1', description: 'look', tool: 'look', dependsOn: [], status: 'completed' }])
    .withSubagentTrace({
      subagentId: 'child-1',
      subagentType: 'explorer',
      parentToolCallId: 'toolu_01',
      prompt: 'go',
      startTime: 1,
      endTime: 2,
      success: true,
      toolExecutions: [{ toolName: 'read', toolCallId: 'inner', arguments: { a: 1 }, result: 'r' }],
    })
}

describe('UAP-153 the fields', () => {
  test('UAP-153 everything is written under its name', () => {
    const state = richState()
    expect(Object.keys(state.toJSON()).toSorted()).toEqual([
      'id',
      'messages',
      'metadata',
      'plan',
      'reasoning',
      'step',
      'subagentTraces',
      'version',
    ])
    expect(state.toJSON()).toMatchObject({ version: '1.0.0', id: state.id, step: 2 })
  })

  test('UAP-153 five fields are enough to read', () => {
    const state = AgentState.fromJSON({
      version: '1.0.0',
      id: 'x',
      messages: [],
      step: 3,
      metadata: { k: 1 },
    })
    expect([state.id, state.step, state.metadata]).toEqual(['x', 3, { k: 1 }])
    expect([state.reasoning, state.plan, state.subagentTraces]).toEqual([[], undefined, []])
  })

  const required = ['version', 'id', 'messages', 'step', 'metadata'] as const
  test.each(required)('UAP-153 without %s it is refused', (field) => {
    const { [field]: _, ...json } = throughText(richState())
    expect(() => AgentState.fromJSON(json)).toThrow(field)
  })
})

test('UAP-154 UAP-155 ids of states, messages, calls, plans and traces survive, and so does metadata', () => {
  const state = richState()
  const restored = AgentState.fromJSON(throughText(state))
  expect(restored.id).toBe(state.id)
  expect(restored.messages.map(({ id }) => id)).toEqual(state.messages.map(({ id }) => id))
  const [user, asked, answered] = restored.messages as [
    Message,
    AssistantMessage,
    ToolResultMessage,
  ]
  expect(asked.toolCalls?.[0]?.toolCallId).toBe('toolu_01')
  expect(answered.results[0]?.toolCallId).toBe('toolu_01')
  expect(restored.plan?.[0]?.id).toBe('p1')
  expect(restored.subagentTraces).toEqual(state.subagentTraces)
  expect(user.metadata).toEqual(state.messages[0]?.metadata)
  expect(asked.content[0]).toEqual((state.messages[1] as AssistantMessage).content[0])
  expect(asked.toolCalls?.[0]?.metadata).toEqual(user.metadata)
})

test('UAP-156 timestamps are ISO 8601, and the same instant when read', () => {
  const state = richState()
  const json = throughText(state)
  for (const { timestamp } of json.messages)
    expect(timestamp).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/)
  expect(json.messages[0]?.timestamp).toBe('2026-01-02T03:04:05.678Z')
  const [first] = AgentState.fromJSON(json).messages
  expect(first?.timestamp).toEqual(new Date('2026-01-02T03:04:05.678Z'))
  for (const timestamp of [0, 1767323045678, null, true, [], '', 'soon', undefined])
    expect(() =>
      AgentState.fromJSON({ ...json, messages: [{ ...json.messages[0]!, timestamp }] }),
    ).toThrow(expect.objectContaining({ code: 'INVALID_REQUEST' }))
})

test('UAP-157 bytes are base64 in the JSON and bytes again when read', () => {
  const json = JSON.stringify(richState())
  expect(json.split(encodeBase64(bytes)).length - 1).toBe(5)
  const [user, , answered] = AgentState.fromJSON(JSON.parse(json)).messages
  expect(user?.images[0]?.source).toEqual({ type: 'bytes', data: bytes })
  expect(user?.audio[0]?.data).toEqual(bytes)
  expect(user?.video[0]?.data).toEqual(bytes)
  expect(isToolResultMessage(answered) && answered.results[0]?.result).toEqual({ photo: bytes })
})

describe('UAP-158 the version', () => {
  test.each(['1.0.0', '1.1.0', '1.99.3'])('UAP-158 %s is read', (version) => {
    expect(AgentState.fromJSON({ ...throughText(richState()), version }).step).toBe(2)
  })
  test.each(['2.0.0', '0.9.0', '10.0.0', '', 'one', 1, null, undefined])(
    'UAP-158 %s is refused',
    (version) => {
      expect(() => AgentState.fromJSON({ ...throughText(richState()), version })).toThrow(
        expect.objectContaining({ code: 'INVALID_REQUEST' }) as Error,
      )
    },
  )
  test('UAP-158 the error says what is wrong', () => {
    expect(() => AgentState.fromJSON({ ...throughText(richState()), version: '2.0.0' })).toThrow(
      /Unsupported UAP version/,
    )
  })
})

test('UAP-089 UAP-166 a restored state has messages of the same classes and serves the next request', async () => {
  const coder = scriptedAgent([calls('look', {}), says('blue'), says('again blue')], {
    tools: [
      { name: 'look', description: 'Looks.', parameters: { type: 'object' }, run: () => bytes },
    ],
  })
  const { state } = await coder.generate('what colour?', AgentState.initial())
  const restored = AgentState.fromJSON(throughText(state))
  expect(restored.messages.map(({ constructor }) => constructor.name)).toEqual(
    state.messages.map(({ constructor }) => constructor.name),
  )
  expect(restored.messages.every((one) => Object.isFrozen(one))).toBe(true)
  await coder.generate('and now?', restored)
  const sent = coder.model.requests.at(-1)!.messages
  expect(sent.slice(0, -1)).toEqual(state.messages)
  expect(isAssistantMessage(sent[1]) && sent[1].hasToolCalls).toBe(true)
})

describe('UAP-169 untrusted data', () => {
  const valid = throughText(richState())
  const runs = process.env['SKEIN_DEEP'] ? 20_000 : 400

  /** Every place in the JSON, as a path. */
  const paths: (string | number)[][] = []
  const walk = (value: unknown, path: (string | number)[]): void => {
    if (path.length > 0) paths.push(path)
    if (Array.isArray(value)) value.forEach((item, index) => walk(item, [...path, index]))
    else if (typeof value === 'object' && value !== null)
      for (const [key, item] of Object.entries(value)) walk(item, [...path, key])
  }
  walk(valid, [])

  const replaced = (path: readonly (string | number)[], value: unknown): unknown => {
    const copy = structuredClone(valid) as unknown
    let place = copy as Record<string | number, unknown>
    for (const key of path.slice(0, -1)) place = place[key] as Record<string | number, unknown>
    place[path.at(-1)!] = value
    return copy
  }
  const junk = fc.oneof(
    fc.constantFrom(null, undefined, '', 'x', 0, -1, 1.5, NaN, true, [], {}, [[]], {
      type: 'user',
    }),
    fc.jsonValue({ maxDepth: 2 }) as fc.Arbitrary<unknown>,
  )

  test('UAP-169 a state with junk in any place is read as a state or refused with a typed error', () => {
    fc.assert(
      fc.property(fc.constantFrom(...paths), junk, (path, value) => {
        let state: AgentState
        try {
          state = AgentState.fromJSON(replaced(path, value))
        } catch (error) {
          expect(isUPPError(error) && error.code).toBe('INVALID_REQUEST')
          return
        }
        // What was accepted is whole: it can be written, and read again as the same.
        const json = throughText(state)
        expect(throughText(AgentState.fromJSON(json))).toEqual(json)
        expect(Number.isInteger(state.step) && typeof state.id === 'string').toBe(true)
      }),
      { seed: 169, numRuns: runs },
    )
  })

  test('UAP-169 anything at all is a state or a typed error', () => {
    fc.assert(
      fc.property(fc.anything({ withBigInt: true, withDate: true, withMap: true }), (value) => {
        expect(() => AgentState.fromJSON(value)).toThrow(
          expect.objectContaining({ code: 'INVALID_REQUEST' }) as Error,
        )
      }),
      { seed: 1690, numRuns: runs },
    )
  })

  test('UAP-169 __proto__ is dropped everywhere and changes no object', () => {
    const evil = '{"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}}}'
    const text = JSON.stringify({ ...valid, metadata: 0 })
      .replace('"metadata":0', `"metadata":${evil}`)
      .replace('"arguments":{', '"arguments":{"__proto__":{"polluted":true},')
    const state = AgentState.fromJSON(JSON.parse(text))
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined()
    expect((state.metadata as Record<string, unknown>)['polluted']).toBeUndefined()
    expect(Object.keys(state.metadata)).not.toContain('__proto__')
    expect(JSON.stringify(state)).not.toContain('__proto__')
    expect(() => state.withMetadata('__proto__', { polluted: true })).not.toThrow()
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined()
  })

  test('UAP-169 nesting without end is refused, and no half-built state is left', () => {
    let deep: unknown = 1
    for (let level = 0; level < 5000; level++) deep = [deep]
    expect(() => AgentState.fromJSON({ ...valid, metadata: { deep } })).toThrow(
      expect.objectContaining({ code: 'INVALID_REQUEST' }) as Error,
    )
  })
})

test('UAP-088 UAP-026 what JSON cannot say is refused by name; a state of a run has its own UUID', async () => {
  for (const value of [1n, () => 1, Symbol('s'), new Map(), NaN])
    expect(() =>
      AgentState.initial()
        .withMetadata('it', { deep: [value] })
        .toJSON(),
    ).toThrow(/metadata\.it\.deep\[0\]/)
  const { state } = await agent({ model: scriptedAgent([says('.')]).model }).generate(
    'x',
    AgentState.initial(),
  )
  expect(throughText(state).id).toMatch(uuidV4)
})
