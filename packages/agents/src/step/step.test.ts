import { llm, UserMessage, type Tool, type ToolOutcome } from '@skein/ai'
import { calls, says, scripted } from '@skein/ai/testing'
import { expect, test } from 'vitest'
import type { StepEffect } from '../contract/checkpoint-store.ts'
import { AgentState } from '../state/state.ts'
import { step, type StepInput, type StepResult } from './step.ts'

const start = AgentState.initial().withMessage(new UserMessage('go')).withStep(1)

function setup(): { input: StepInput; ran: string[]; effects: string[] } {
  const ran: string[] = []
  const effects: string[] = []
  const tool = (name: string): Tool => ({
    name,
    description: 'd',
    parameters: { type: 'object' },
    run: () => {
      ran.push(name)
      return `${name} ran`
    },
  })
  const tools = [tool('a'), tool('b')]
  const model = scripted([
    [calls('a', {}, { id: 'call_a' }), calls('b', {}, { id: 'call_b' })],
    says('done'),
  ])
  const commit = async (effect: StepEffect): Promise<void> => {
    await Promise.resolve()
    effects.push(
      effect.type === 'call_end' ? `${effect.type} ${effect.call.toolCallId}` : effect.type,
    )
  }
  return { input: { state: start, llm: llm({ model, tools }), tools, commit }, ran, effects }
}

async function finish(input: StepInput): Promise<StepResult> {
  const batches = step(input)
  for (;;) {
    const next = await batches.next()
    if (next.done) return next.value
  }
}

test('the journal is told before and after the inference and each call', async () => {
  const { input, effects } = setup()
  const { state, executions, openCalls } = await finish({ ...input, mode: 'sequential' })
  expect(effects).toEqual([
    'inference_start',
    'inference_end',
    'call_start',
    'call_end call_a',
    'call_start',
    'call_end call_b',
  ])
  expect(executions.map(({ result }) => result)).toEqual(['a ran', 'b ran'])
  expect(openCalls).toEqual([])
  expect(state.messages.map(({ type }) => type)).toEqual(['user', 'assistant', 'tool_result'])
})

test('a step that is entered again runs what is open, and nothing that is settled', async () => {
  const { input, ran, effects } = setup()
  const first = await finish({ ...input, runsTools: false })
  expect(first.openCalls.map(({ toolCallId }) => toolCallId)).toEqual(['call_a', 'call_b'])
  expect(ran).toEqual([])
  const settled = new Map<string, ToolOutcome>([['call_a', { type: 'done', result: 'known' }]])
  effects.length = 0
  const again = await finish({ ...input, state: first.state, settled })
  expect(ran).toEqual(['b'])
  expect(again.turn).toBeUndefined()
  expect(effects).toEqual(['call_start', 'call_end call_b'])
  expect(again.state.messages.at(-1)).toMatchObject({
    results: [
      { toolCallId: 'call_a', result: 'known' },
      { toolCallId: 'call_b', result: 'b ran' },
    ],
  })
  const { turn } = await finish({ ...input, state: again.state })
  expect(turn?.response.text).toBe('done')
})

test('a journal that fails before a call keeps it from running', async () => {
  const { input, ran } = setup()
  const commit = ({ type }: StepEffect): void => {
    if (type === 'call_start') throw new Error('disk full')
  }
  await expect(finish({ ...input, commit })).rejects.toThrow('disk full')
  expect(ran).toEqual([])
})

test('leaving the generator aborts the running calls, and the step is over when it returns', async () => {
  const { input, effects } = setup()
  let signal: AbortSignal | undefined
  const waits: Tool = {
    name: 'a',
    description: 'd',
    parameters: { type: 'object' },
    run: (_: unknown, context: { signal: AbortSignal }) =>
      new Promise(() => (signal = context.signal)),
  }
  const tools = [waits, input.tools[1]!]
  const batches = step({ ...input, tools })
  for (;;) {
    const { value, done } = await batches.next()
    if (done) throw new Error('the step cannot end')
    if (value.some(({ upp }) => upp?.type === 'tool_execution_start')) break
  }
  await batches.return(undefined as never)
  expect(signal?.aborted).toBe(true)
  expect(effects).not.toContain('call_end call_a')
  expect(await batches.next()).toEqual({ value: undefined, done: true })
})

test('a step that nobody streams has the same result and yields nothing', async () => {
  const { input, ran } = setup()
  const batches = step({ ...input, streaming: false })
  const { value, done } = await batches.next()
  expect(done).toBe(true)
  expect(ran).toEqual(['a', 'b'])
  expect((value as StepResult).executions.map(({ result }) => result)).toEqual(['a ran', 'b ran'])
})
