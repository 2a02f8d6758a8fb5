/** UAP §12.4.7: a run that is restored from any of its checkpoints continues as the live one did. */
import { agent, AgentState, type AgentStateJSON, type ExecutionStrategy } from '@skein/agents'
import { memoryCheckpoints, type CheckpointStore } from '@skein/agents/checkpoint'
import { loop, plan, react } from '@skein/agents/execution'
import type { LLMRequest, Tool } from '@skein/ai'
import { calls, says, scripted, type ScriptFunction } from '@skein/ai/testing'
import { manualClock } from '@skein/base'
import { describe, expect, test } from 'vitest'
import { anonymous, content } from './support/state.ts'

const steps = ['a', 'b', 'c'].map((id, index, all) => ({
  id,
  description: id.toUpperCase(),
  tool: 'work',
  dependsOn: all.slice(0, index),
}))

/** Answers from the history alone, so that a new model says what the old one would have said. */
const script: ScriptFunction = ({ messages, structure, tools }) => {
  if (structure) return says(JSON.stringify({ steps: structure['title'] === 'none' ? [] : steps }))
  if (tools.length === 0) return says(`thought ${messages.length}`)
  const rounds = messages.filter(({ type }) => type === 'tool_result').length
  const isAnswered = messages.at(-1)?.type === 'tool_result'
  const isPlanned = messages.some(({ text }) => text.startsWith('Carry out'))
  if (isPlanned ? isAnswered : rounds >= 3) return says(`said ${messages.length}`)
  return [
    calls('work', { n: rounds }, { id: `w${rounds}` }),
    calls('rest', {}, { id: `r${rounds}` }),
  ]
}

function world(execution: ExecutionStrategy, saved: [number, AgentStateJSON][] = []) {
  const clock = manualClock(1000)
  const tool = (name: string): Tool => ({
    name,
    description: 'd',
    parameters: { type: 'object' },
    run: ({ n = 0 }: { n?: number }) => (clock.advance(10), `${name} ${n}`),
  })
  const model = scripted(script)
  const store = memoryCheckpoints({ journal: true })
  const checkpoints: CheckpointStore = {
    ...store,
    save: async (sessionId, state, options) => {
      saved.push([model.requests.length, structuredClone(state)])
      return store.save(sessionId, state, options)
    },
  }
  const tools = [tool('work'), tool('rest')]
  const options = { execution, checkpoints, clock, sessionId: 's', durability: 'sync' } as const
  return { model, worker: agent({ model, tools, ...options }) }
}

const shown = (requests: readonly LLMRequest[]): unknown[] =>
  requests.map(({ messages, tools, structure }) => [
    anonymous(messages),
    tools?.map(({ name }) => name),
    structure !== undefined,
  ])
const known = (state: AgentState): unknown[] => {
  const { revision: _, ...run } = state.run!
  return [content(state.withMetadata('agentId', '')), run]
}

const strategies: [string, () => ExecutionStrategy][] = [
  ['loop', () => loop()],
  ['loop with a limit', () => loop({ maxIterations: 2 })],
  ['react', () => react()],
  ['react with a limit', () => react({ maxSteps: 2 })],
  ['plan', () => plan()],
  ['plan without steps', () => plan({ planSchema: { type: 'object', title: 'none' } })],
]

describe.each(strategies)('UAP-166 %s', (_, execution) => {
  test('UAP-162 UAP-166 from every checkpoint: the same requests, the same end, the same account', async () => {
    const saved: [number, AgentStateJSON][] = []
    const live = world(execution(), saved)
    const whole = await live.worker.generate('go', AgentState.initial())
    expect(saved.length).toBeGreaterThan(whole.state.step)
    // A run that a limit has ended is over: resuming its last state would begin another step.
    const open = whole.stopReason === 'complete' ? saved : saved.slice(0, -1)
    for (const [asked, json] of open) {
      const { model, worker } = world(execution())
      const restored = AgentState.fromJSON(JSON.parse(JSON.stringify(json)))
      const { state, stopReason } = await worker.resume(restored)
      expect(shown(model.requests)).toEqual(shown(live.model.requests.slice(asked)))
      expect([stopReason, known(state)]).toEqual([whole.stopReason, known(whole.state)])
    }
  })
})
