/** Whether a run waits for the saves of its sub-agents. */
import { agent, AgentState, subagent, type AgentOptions, type RunOptions } from '@skein/agents'
import type { CheckpointStore } from '@skein/agents/checkpoint'
import { loop, plan, react } from '@skein/agents/execution'
import { calls, says, scripted } from '@skein/ai/testing'
import { expect, test } from 'vitest'
import { custom } from './support/custom-strategy.ts'
import { recordingStore } from './support/state.ts'
import { nextTick } from './support/tools.ts'

const start = AgentState.initial()

/** An agent that calls another one, which saves into `checkpoints`. */
function caller(checkpoints: CheckpointStore, options: Partial<AgentOptions> = {}) {
  const kid = agent({ model: scripted(() => says('hi')), sessionId: 'kid', checkpoints })
  const tool = subagent({
    name: 'kid',
    description: 'd',
    parameters: { type: 'object' },
    agent: kid,
    prompt: () => 'go',
  })
  const model = scripted(({ structure, tools, messages }) => {
    if (structure) return says('{"steps":[]}')
    const isDone = messages.some(({ type }) => type === 'tool_result')
    return isDone || tools.length === 0 ? says('done') : calls('kid')
  })
  return agent({ model, tools: [tool], ...options })
}

test.each([loop(), react(), plan(), custom()])(
  'UAP-164 a save of a sub-agent that never ends does not hold up its caller ($name)',
  async (execution) => {
    const endless = { ...recordingStore(), save: () => new Promise<void>(() => {}) }
    for (const checkpoints of [undefined, recordingStore(), endless]) {
      const worker = caller(endless, { execution, checkpoints })
      const generated = await worker.generate('x', start)
      const streamed = await worker.stream('x', start).result
      for (const { turn } of [generated, streamed])
        expect([turn.toolExecutions.length, turn.response.text]).toEqual([1, 'done'])
    }
  },
)

/** A store that takes a while, and what was noted in its order. */
function slowStore(): { store: CheckpointStore; noted: string[] } {
  const noted: string[] = []
  const save: CheckpointStore['save'] = async (_, { step }) => {
    await nextTick()
    noted.push(`saved ${step}`)
  }
  return { store: { ...recordingStore(), save }, noted }
}

test('UAP-164 what a caller did not wait for is saved when its flush has ended', async () => {
  for (const execution of [loop(), custom()]) {
    const { store, noted } = slowStore()
    const worker = caller(store, { execution })
    await worker.generate('x', start)
    await worker.flush()
    expect(noted).toEqual(['saved 1'])
  }
})

test('UAP-164 a call that is journaled, or saved in step, has a result after its sub-agent is saved', async () => {
  const { store, noted } = slowStore()
  const journal = { ...recordingStore(), record: async () => void noted.push('recorded') }
  await caller(store, { checkpoints: journal }).generate('x', start)
  expect(noted.splice(0)).toEqual(['saved 1', 'recorded'])

  const commit: RunOptions['commit'] = ({ type }) =>
    void (type === 'call_end' && noted.push('committed'))
  await caller(store).generate('x', start, { commit })
  expect(noted.splice(0)).toEqual(['saved 1', 'committed'])

  const strategy = { onObserve: () => void noted.push('observed') }
  await caller(store, {
    checkpoints: recordingStore(),
    durability: 'sync',
    strategy,
  }).generate('x', start)
  expect(noted).toEqual(['saved 1', 'observed'])
})
