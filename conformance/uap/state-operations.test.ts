import { AgentState, type AgentStateJSON } from '@skein/agents'
import { AssistantMessage, ToolResultMessage, UserMessage, type Message } from '@skein/ai'
import { zeroUsage } from '@skein/ai/engine'
import { describe, expect, test } from 'vitest'
import { uuidV4 } from './support/state.ts'

const one = new UserMessage('one')
const two = new AssistantMessage('', [{ toolCallId: 'c', toolName: 'look', arguments: {} }])
const three = new UserMessage('three')
const step = {
  id: 'a',
  description: 'A',
  tool: 'look',
  dependsOn: ['z'],
  status: 'pending',
} as const
const trace = {
  subagentId: 's',
  subagentType: 't',
  parentToolCallId: 'c',
  prompt: 'p',
  startTime: 1,
  endTime: 2,
  success: true,
  toolExecutions: [{ toolName: 'look', arguments: { deep: [1] }, result: 'r' }],
  children: [],
}
const request = { kind: 'approval', request: { deep: ['x'] } } as const
const suspension = {
  answered: new ToolResultMessage([{ toolCallId: 'b', toolName: 'look', result: 1 }]),
  deferred: [{ toolCallId: 'c', request }],
}
const run = {
  id: 'r',
  revision: 1,
  steps: 2,
  subagentSteps: 0,
  durationMs: 3,
  usage: zeroUsage,
  subagentUsage: zeroUsage,
}

/** A state in which every field has a value, with one field that this version does not know. */
function full(): AgentState {
  const unknown = {
    version: '1.9',
    id: 'x',
    messages: [],
    step: 0,
    metadata: {},
    later: [{ a: 1 }],
  }
  return AgentState.fromJSON(unknown)
    .withMessages([one, two])
    .withStep(4)
    .withMetadata('deep', { list: [{ x: 1 }] })
    .withReasoning('because')
    .withReasoning('')
    .withPlan([step])
    .withSubagentTrace(trace)
    .withSuspension(suspension)
    .withRun(run)
}

type Operation = (state: AgentState) => AgentState
/** Each operation, the field of the JSON that it changes, and what that field is afterwards. */
const operations: Record<string, [Operation, keyof AgentStateJSON, unknown]> = {
  withMessage: [(state) => state.withMessage(three), 'messages', [one, two, three]],
  'withMessage of a known one': [(state) => state.withMessage(one), 'messages', [one, two, one]],
  withMessages: [(state) => state.withMessages([three, one]), 'messages', [one, two, three, one]],
  'withMessages of none': [(state) => state.withMessages([]), 'messages', [one, two]],
  withContext: [(state) => state.withContext([three]), 'messages', [three]],
  'withContext of none': [(state) => state.withContext([]), 'messages', []],
  withStep: [(state) => state.withStep(0), 'step', 0],
  'withStep of the same': [(state) => state.withStep(4), 'step', 4],
  withMetadata: [(state) => state.withMetadata('a', null), 'metadata', { deep: { list: [{ x: 1 }] }, a: null }],
  'withMetadata of the same': [(state) => state.withMetadata('deep', state.metadata['deep']), 'metadata', { deep: { list: [{ x: 1 }] } }],
  'withMetadata of another value': [(state) => state.withMetadata('deep', 0), 'metadata', { deep: 0 }],
  'withMetadata of nothing': [(state) => state.withMetadata('deep', undefined), 'metadata', {}],
  withReasoning: [(state) => state.withReasoning(' why '), 'reasoning', ['because', '', ' why ']],
  'withReasoning of the same': [(state) => state.withReasoning(''), 'reasoning', ['because', '', '']],
  withPlan: [(state) => state.withPlan([{ ...step, id: 'b' }]), 'plan', [{ ...step, id: 'b' }]],
  'withPlan of none': [(state) => state.withPlan([]), 'plan', []],
  withSubagentTrace: [(state) => state.withSubagentTrace({ ...trace, subagentId: 'u' }), 'subagentTraces', [trace, { ...trace, subagentId: 'u' }]],
  'withSubagentTrace of a known one': [(state) => state.withSubagentTrace(trace), 'subagentTraces', [trace, trace]],
  withSuspension: [(state) => state.withSuspension(undefined), 'suspension', undefined],
  withRun: [(state) => state.withRun({ ...run, steps: 9 }), 'run', { ...run, steps: 9 }],
} // prettier-ignore

describe.each(Object.entries(operations))('%s', (_name, [operation, field, expected]) => {
  test('UAP-083 UAP-084 UAP-026 changes its field alone, in a state with an id of its own', () => {
    const before = full()
    const { id, ...old } = before.toJSON()
    const after = operation(before)
    const { id: next, ...json } = after.toJSON()
    const wanted = field === 'messages' ? (expected as Message[]).map(({ id: of }) => of) : expected
    const given = json[field as keyof typeof json]
    expect(field === 'messages' ? after.messages.map(({ id: of }) => of) : given).toEqual(wanted)
    expect({ ...json, [field]: 0 }).toEqual({ ...old, [field]: 0 })
    expect(before.toJSON()).toEqual({ id, ...old })
    expect(next).toMatch(uuidV4)
    expect(new Set([id, next, operation(before).id, operation(after).id]).size).toBe(4)
    expect(after.id).toBe(next)
  })

  test('UAP-012 UAP-086 everything in the result is frozen', () => {
    expectFrozen(operation(full()))
  })
})

/** Everything that can be reached from a state, except the insides of a date. */
function expectFrozen(value: unknown, path = 'state'): void {
  if (typeof value !== 'object' || value === null || value instanceof Date) return
  expect(Object.isFrozen(value), path).toBe(true)
  const names = value instanceof AgentState ? fields : Object.keys(value)
  for (const name of names)
    expectFrozen((value as Record<string, unknown>)[name], `${path}.${name}`)
}
const fields = ['messages', 'metadata', 'reasoning', 'plan', 'subagentTraces', 'suspension', 'run']

test('UAP-012 UAP-089 a state that was read from JSON is frozen, equal and apart from its source', () => {
  const json = JSON.parse(JSON.stringify(full())) as AgentStateJSON
  const copy = structuredClone(json)
  const state = AgentState.fromJSON(json)
  expectFrozen(state)
  expect(state.toJSON()).toEqual(copy)
  const { deferred } = json.suspension! as unknown as { deferred: { toolCallId: string }[] }
  deferred[0]!.toolCallId = 'changed'
  ;(json.plan as unknown as { id: string }[])[0]!.id = 'changed'
  ;(json.run as { steps: number }).steps = 99
  ;(json.metadata['deep'] as { list: unknown[] }).list.push('changed')
  ;(json.subagentTraces as unknown[]).pop()
  ;(json.reasoning as string[]).push('changed')
  expect(state.toJSON()).toEqual(copy)
})

test('UAP-012 UAP-013 values and lists of the caller are copied: neither frozen, nor kept, nor changed', () => {
  const messages = [one]
  const plan = [{ ...step, dependsOn: ['z'] }]
  const value = { list: [1] }
  const own = { ...trace, toolExecutions: [{ ...trace.toolExecutions[0]!, result: 'r' }] }
  const waiting = { deferred: [{ toolCallId: 'c', request }] }
  const account = { ...run, usage: { ...zeroUsage } }
  const state = AgentState.initial()
    .withContext(messages)
    .withMessage(three)
    .withPlan(plan)
    .withMetadata('m', value)
    .withSubagentTrace(own)
    .withSuspension(waiting)
    .withRun(account)
  const before = JSON.stringify(state)
  expect(messages).toEqual([one])
  messages.push(two as never)
  plan[0]!.dependsOn.push('changed')
  plan.push(plan[0]!)
  value.list.push(2)
  own.toolExecutions[0]!.result = 'changed'
  waiting.deferred = []
  account.usage = { ...zeroUsage, inputTokens: 9 }
  account.steps = 99
  expect(JSON.stringify(state)).toBe(before)
})

test('UAP-081 UAP-082 what is no message is refused at any place in the list', () => {
  const wrong = { text: 'no message' } as never
  for (const list of [[wrong], [one, wrong], [one, two, wrong]])
    for (const operation of ['withMessages', 'withContext'] as const)
      expect(() => AgentState.initial()[operation](list)).toThrow(
        expect.objectContaining({
          code: 'INVALID_REQUEST',
          message: expect.stringContaining(`Item ${list.length - 1}`),
        }),
      )
})

test('UAP-031 UAP-084 a step is a whole number from 0, wherever it comes from', () => {
  for (const bad of [1.5, -1, Number.NaN, Infinity, '1', null]) {
    expect(() => AgentState.initial().withStep(bad as number)).toThrow('whole number')
    const json = { ...full().toJSON(), step: bad }
    expect(() => AgentState.fromJSON(json)).toThrow(
      expect.objectContaining({ code: 'INVALID_REQUEST' }),
    )
  }
})

test('UAP-080 a first state has these fields and no others', () => {
  const { id, ...json } = AgentState.initial().toJSON()
  expect(id).toMatch(uuidV4)
  expect(json).toEqual({ version: '1.0.0', messages: [], step: 0, metadata: {}, reasoning: [] })
  const { messages, reasoning, subagentTraces, interrupts } = AgentState.initial()
  expect([messages, reasoning, subagentTraces, interrupts]).toEqual([[], [], [], []])
})
