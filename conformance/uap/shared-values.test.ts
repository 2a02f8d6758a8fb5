/** Values that an application keeps after it has given them away: they stay its own, and states stay as they are. */
import { agent, AgentState, type SubagentExecutionTrace } from '@skein/agents'
import { AssistantMessage, UserMessage, type Message, type Tool } from '@skein/ai'
import { says, scripted } from '@skein/ai/testing'
import { expect, test } from 'vitest'
import { add } from './support/tools.ts'

const start = AgentState.initial()

test('UAP-083 UAP-013 a list given to withContext or withMessages stays as it was, and so does the state', () => {
  const make = [
    (list: Message[]) => start.withContext(list),
    (list: Message[]) => start.withMessages(list),
  ]
  for (const given of make)
    for (const isFrozen of [false, true]) {
      const list: Message[] = [new UserMessage('a'), new AssistantMessage('b')]
      if (isFrozen) Object.freeze(list)
      const state = given(list)
      const before = state.messages
      const longer = state.withMessage(new UserMessage('c')).withMessages([new UserMessage('d')])
      const other = state.withMessage(new UserMessage('e'))
      const texts = (messages: readonly Message[]) => messages.map(({ text }) => text).join('')
      expect([list, before, state.messages, longer.messages, other.messages].map(texts)).toEqual([
        'ab',
        'ab',
        'ab',
        'abcd',
        'abe',
      ])
      if (!isFrozen) list.push(new UserMessage('f'))
      expect(texts(state.messages)).toBe('ab')
      expect(state.messages).toBe(before)
      expect(Object.isFrozen(before)).toBe(true)
    }
})

test('UAP-013 UAP-088 writing a state as JSON neither freezes a message nor keeps what it was', () => {
  const own = { ...new UserMessage('a', { metadata: { app: { seen: 1 } } }) }
  const metadata = { app: { seen: 1 } }
  Object.assign(own, { metadata })
  const state = start.withMessage(own as Message)
  expect(state.toJSON().messages[0]).toMatchObject({ metadata: { app: { seen: 1 } } })
  expect([Object.isFrozen(own), Object.isFrozen(metadata.app)]).toEqual([false, false])
  metadata.app.seen = 2
  expect(state.toJSON().messages[0]).toMatchObject({ metadata: { app: { seen: 2 } } })
})

test('UAP-085 UAP-012 what is given to a state as a value is copied and frozen', () => {
  const trace: SubagentExecutionTrace = {
    subagentId: 'i',
    subagentType: 't',
    parentToolCallId: 'c',
    prompt: 'p',
    startTime: 1,
    endTime: 2,
    success: true,
    toolExecutions: [{ toolName: 'n', arguments: { deep: [1] }, result: 'r' }],
  }
  const step = { id: 'a', description: 'A', dependsOn: ['b'], status: 'pending' as const }
  const value = { deep: [1] }
  const state = start.withSubagentTrace(trace).withPlan([step]).withMetadata('value', value)
  const before = JSON.stringify(state)
  ;(trace as { result?: string }).result = 'changed'
  ;(trace.toolExecutions![0]!.arguments as typeof value).deep.push(2)
  step.dependsOn.push('c')
  value.deep.push(2)
  expect(JSON.stringify(state)).toBe(before)
  const restored = AgentState.fromJSON(JSON.parse(before))
  for (const { subagentTraces, plan, metadata } of [state, restored]) {
    const parts = [subagentTraces, subagentTraces[0], plan, plan![0], plan![0]!.dependsOn, metadata]
    for (const part of [...parts, metadata['value'], subagentTraces[0]!.toolExecutions![0]])
      expect(Object.isFrozen(part)).toBe(true)
  }
})

test('UAP-038 UAP-040 an agent keeps its own list of tools, and nothing of it can be replaced', async () => {
  const tools: Tool[] = [add]
  const model = scripted(() => says('ok'))
  const worker = agent({ model, tools })
  tools.push({ ...add, name: 'late' })
  expect(worker.tools).toEqual([add])
  expect(() => (worker.tools as Tool[]).push({ ...add, name: 'later' })).toThrow(TypeError)
  for (const name of ['id', 'model', 'tools', 'generate', 'ask'] as const)
    expect(() => Object.assign(worker, { [name]: undefined })).toThrow(TypeError)
  expect(worker.id).toBe(worker.id)
  await worker.query('x')
  expect(model.requests[0]!.tools.map(({ name }) => name)).toEqual(['add'])
})
