import {
  agent,
  AgentState,
  subagent,
  type AgentContext,
  type AgentOptions,
  type ExecutionContext,
} from '@skein/agents'
import { loop, plan, react } from '@skein/agents/execution'
import type { Tool } from '@skein/ai'
import { calls, says, scripted } from '@skein/ai/testing'
import { expect, test } from 'vitest'
import { custom } from './support/custom-strategy.ts'
import { recordingStore, uuidV4 } from './support/state.ts'
import { add } from './support/tools.ts'

const model = () => scripted(({ structure }) => says(structure ? '{"steps":[]}' : 'ok'))

test('UAP-028 UAP-027 a given session id is used as it was written, an empty one of a state is none', async () => {
  for (const sessionId of ['My Session/ö', ' spaced ', 'ABC']) {
    const checkpoints = recordingStore()
    const worker = agent({ model: model(), checkpoints, sessionId })
    const { state } = await worker.generate('x', AgentState.initial())
    await worker.flush()
    expect(state.metadata['sessionId']).toBe(sessionId)
    expect(checkpoints.saves.map(([id]) => id)).toEqual([sessionId])
  }
  const worker = agent({ model: model(), checkpoints: recordingStore() })
  for (const bad of ['', 7, null]) {
    const { state } = await worker.generate(
      'x',
      AgentState.initial().withMetadata('sessionId', bad),
    )
    expect(state.metadata['sessionId']).toMatch(uuidV4)
  }
})

test('UAP-029 the session is in the state that hooks and strategies see, also without a store', async () => {
  for (const execution of [loop(), react(), plan(), custom()]) {
    const seen: unknown[] = []
    const worker = agent({
      model: model(),
      sessionId: 's',
      execution,
      strategy: { onStepStart: (_, { metadata }) => void seen.push(metadata) },
    })
    const { state } = await worker.generate('x', AgentState.initial())
    expect(state.metadata).toEqual({ sessionId: 's' })
    expect(seen.length).toBeGreaterThan(0)
    for (const metadata of seen) expect(metadata).toEqual({ sessionId: 's' })
  }
})

test('UAP-032 stateId names the very state: of the run for a strategy, with the call for a tool', async () => {
  const seen: ExecutionContext[] = []
  const changed = agent({
    model: model(),
    execution: custom((context) => seen.push(context)),
    sessionId: 's',
    middleware: [{ name: 'm', before: (c) => ({ ...c, state: c.state.withMetadata('a', 1) }) }],
  })
  await changed.generate('x', AgentState.initial())
  expect(seen[0]!.stateId).toBe(seen[0]!.state.id)
  const contexts: AgentContext[] = []
  const look: Tool = { ...add, name: 'look', run: (_: unknown, c: AgentContext) => void contexts.push(c) } // prettier-ignore
  const states: string[] = []
  const script = [calls('look'), calls('look'), says('ok')]
  await agent({ model: scripted(script), tools: [look] }).generate('x', AgentState.initial(), {
    commit: (effect) => void (effect.type === 'inference_end' && states.push(effect.state.id)),
  })
  expect(contexts.map(({ stateId }) => stateId)).toEqual(states.slice(0, 2))
  expect(contexts.map(({ sessionId }) => sessionId)).toEqual([undefined, undefined])
  expect(contexts.map(({ step }) => step)).toEqual([1, 2])
})

test('UAP-032 the chain of callers has every level', async () => {
  const contexts: AgentContext[] = []
  const look: Tool = { ...add, name: 'look', run: (_: unknown, c: AgentContext) => void contexts.push(c) } // prettier-ignore
  const asTool = (name: string, inner: AgentOptions) => {
    const worker = agent(inner)
    const parameters = { type: 'object' }
    const tool = subagent({ name, description: 'd', parameters, agent: worker, prompt: () => 'go' })
    return { worker, tool }
  }
  const bottom = asTool('bottom', { model: scripted([calls('look'), says('ok')]), tools: [look] })
  const middle = asTool('middle', {
    model: scripted([calls('bottom'), says('ok')]),
    tools: [bottom.tool],
    sessionId: 'm',
  })
  const top = agent({
    model: scripted([calls('middle'), says('ok')]),
    tools: [middle.tool],
    sessionId: 't',
  })
  await top.generate('x', AgentState.initial())
  expect(contexts[0]).toMatchObject({
    agentId: bottom.worker.id,
    parentContext: {
      agentId: middle.worker.id,
      sessionId: 'm',
      parentContext: { agentId: top.id, sessionId: 't' },
    },
  })
  expect(contexts[0]!.parentContext!.parentContext!.parentContext).toBeUndefined()
})

test('UAP-034 also where a vendor uses the id of a call again, in one run and in the next', async () => {
  const child = agent({ model: scripted(() => says('ok')) })
  const parameters = { type: 'object' }
  const tool = subagent({ name: 'child', description: 'd', parameters, agent: child, prompt: () => 'go' }) // prettier-ignore
  const again = calls('child', {}, { id: 'same' })
  const script = [again, again, says('x'), again, says('y')]
  const parent = agent({ model: scripted(script), tools: [tool], sessionId: 's' })
  const first = await parent.generate('x', AgentState.initial())
  const { state } = await parent.generate('x', first.state)
  const ids = state.subagentTraces.map(({ subagentId }) => subagentId)
  expect(ids).toHaveLength(3)
  expect(new Set(ids).size).toBe(3)
  expect(ids.every((id) => uuidV4.test(id))).toBe(true)
})
