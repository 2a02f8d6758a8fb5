/** Runs that must continue: after many failures, with ids that are used again, with a plan that is stuck. */
import { agent, AgentState, type PlanStep } from '@skein/agents'
import { loop, plan, react } from '@skein/agents/execution'
import { AssistantMessage, isToolResultMessage, ToolResultMessage, UserMessage } from '@skein/ai'
import { calls, fails, says, scripted } from '@skein/ai/testing'
import { describe, expect, test } from 'vitest'
import { add } from './support/tools.ts'

const start = AgentState.initial()
const planOf = (...ids: readonly string[]) =>
  says(JSON.stringify({ steps: ids.map((id) => ({ id, description: id, dependsOn: [] })) }))

test('UAP-017 UAP-076 plan() makes as many new plans as steps fail, if no limit is set', async () => {
  const count = 40
  let failed = 0
  const model = scripted(({ structure }) => {
    if (structure) return planOf(`step ${failed}`)
    return failed < count ? (failed++, fails('down')) : says('done')
  })
  const { state, stopReason } = await agent({ model, execution: plan() }).generate('x', start)
  expect(stopReason).toBe('complete')
  expect(state.plan!.map(({ status }) => status)).toEqual([
    ...Array.from({ length: count }, () => 'failed'),
    'completed',
  ])
})

describe('a vendor that uses the ids of calls again', () => {
  /** Calls `add` under the id `call_0` until the question has three results. */
  const script = () =>
    scripted(({ structure, tools, messages }) => {
      if (structure) return planOf('a')
      if (tools.length === 0) return says('I add.')
      const asked = messages.findLastIndex(({ text }) => text === 'go')
      const done = messages.slice(asked).filter(isToolResultMessage).length
      return done < 3 ? calls('add', { a: asked, b: done }, { id: 'call_0' }) : says('done')
    })

  test.each([loop(), react(), plan()])(
    'UAP-057 UAP-070 has each call run, in one question and in the next ($name)',
    async (execution) => {
      const worker = agent({ model: script(), tools: [add], execution })
      const first = await worker.generate('go', start)
      const stored = AgentState.fromJSON(JSON.parse(JSON.stringify(first.state)))
      const second = await worker.stream('go', stored).result
      const asked = first.state.messages.length
      for (const [{ turn, stopReason }, at] of [
        [first, 0],
        [second, asked],
      ] as const) {
        // prettier-ignore
        expect([stopReason, turn.response.text]).toEqual(['complete', 'done'])
        expect(turn.toolExecutions.map(({ result }) => result)).toEqual([at, at + 1, at + 2])
      }
      // Each call has its own result right after it, as vendors want it.
      const { messages } = second.state
      for (const [at, message] of messages.entries())
        if (message instanceof AssistantMessage && message.hasToolCalls)
          expect(messages[at + 1]).toMatchObject({ results: [{ toolCallId: 'call_0' }] })
    },
  )

  test.each([loop(), react(), plan()])(
    'UAP-057 has a call run that was open when its run was resumed ($name)',
    async (execution) => {
      const call = { toolCallId: 'call_0', toolName: 'add', arguments: { a: 0, b: 1 } }
      const state = start
        .withMessages([
          new UserMessage('go'),
          new AssistantMessage('', [call]),
          new ToolResultMessage([{ ...call, result: 1 }]),
          new AssistantMessage('', [{ ...call, arguments: { a: 5, b: 5 } }]),
        ])
        .withPlan([{ id: 'a', description: 'a', dependsOn: [], status: 'in_progress' }])
      const worker = agent({ model: script(), tools: [add], execution })
      const { turn, stopReason } = await worker.resume(state)
      expect(turn.toolExecutions.map(({ result }) => result)).toEqual([10, 2])
      expect([stopReason, turn.response.text]).toEqual(['complete', 'done'])
    },
  )
})

test('UAP-079 UAP-076 a resumed plan whose steps can never start is made anew, also after an answer', async () => {
  const step = (id: string, status: PlanStep['status'], dependsOn: string[] = []): PlanStep => ({
    id,
    description: id,
    status,
    dependsOn,
  })
  const asked = new UserMessage('go')
  for (const messages of [[asked], [asked, new AssistantMessage('It failed.')]])
    for (const stuck of [
      [step('a', 'failed'), step('b', 'pending', ['a'])],
      [step('a', 'completed'), step('b', 'pending', ['gone'])],
    ]) {
      const model = scripted(({ structure }) => (structure ? planOf('c') : says('done')))
      const state = start.withMessages(messages).withPlan(stuck)
      const stored = AgentState.fromJSON(JSON.parse(JSON.stringify(state)))
      const result = await agent({ model, execution: plan() }).resume(stored)
      expect([result.stopReason, result.turn.response.text]).toEqual(['complete', 'done'])
      expect(result.state.plan!.map(({ id, status }) => `${id} ${status}`)).toEqual([
        `a ${stuck[0]!.status}`,
        'c completed',
      ])
      expect(model.requests[0]!.messages.at(-1)!.text).toContain('"b"')
    }
})
