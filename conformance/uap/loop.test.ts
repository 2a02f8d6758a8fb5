import { agent, AgentState } from '@skein/agents'
import { loop } from '@skein/agents/execution'
import { isAssistantMessage, isToolResultMessage, type Message } from '@skein/ai'
import { calls, says, scripted } from '@skein/ai/testing'
import { describe, expect, test } from 'vitest'
import { add } from './support/tools.ts'

const adding = calls('add', { a: 1, b: 1 })
const start = AgentState.initial()

test('UAP-057 asks, runs the tools, asks again, and ends when nothing more is called', async () => {
  const model = scripted([adding, [adding, adding], adding, says('done')])
  const { turn } = await agent({ model, tools: [add], execution: loop() }).generate('go', start)
  expect(
    model.requests.map(({ messages }) => messages.map(({ type }) => type[0]).join('')),
  ).toEqual(['u', 'uat', 'uatat', 'uatatat'])
  expect(turn.toolExecutions).toHaveLength(4)
  expect(turn.response.text).toBe('done')
})

describe('maxIterations', () => {
  const limited = async (maxIterations: number) => {
    const model = scripted(() => adding)
    const worker = agent({ model, tools: [add], execution: loop({ maxIterations }) })
    return { model, worker, ...(await worker.generate('go', start)) }
  }

  test.each([1, 2, 5])(
    'UAP-058 %i: so many inferences, each with its tools, then a whole turn',
    async (count) => {
      const { model, turn, state, stopReason } = await limited(count)
      expect(model.requests).toHaveLength(count)
      expect(turn.toolExecutions).toHaveLength(count)
      expect(stopReason).toBe('max_iterations')
      expect(state.step).toBe(count)
      expect(turn.response.hasToolCalls).toBe(true)
      expect(unanswered(state.messages)).toEqual([])
      expect(turn.openCalls).toEqual([])
    },
  )

  test('UAP-058 0: one inference, whose calls are left open', async () => {
    const { model, turn, state, worker } = await limited(0)
    expect(model.requests).toHaveLength(1)
    expect(turn.toolExecutions).toEqual([])
    expect(turn.openCalls).toEqual([{ toolCallId: 'call_1' }])
    expect(unanswered(state.messages)).toEqual(['call_1'])
    await worker.generate('and?', state)
    expect(unanswered(model.requests[1]!.messages)).toEqual([])
  })

  test('UAP-058 a run that ends by itself in its last step is complete', async () => {
    for (const maxIterations of [1, 2]) {
      const script = [adding, says('done')].slice(2 - maxIterations)
      const worker = agent({
        model: scripted(script),
        tools: [add],
        execution: loop({ maxIterations }),
      })
      const { stopReason, state } = await worker.generate('go', start)
      expect([stopReason, state.step]).toEqual(['complete', maxIterations])
    }
  })

  test('UAP-058 each call of the agent has the limit for itself', async () => {
    const { state, worker } = await limited(2)
    const second = await worker.generate('continue', state)
    expect([second.state.step, second.stopReason]).toEqual([2, 'max_iterations'])
    expect(second.turn.toolExecutions).toHaveLength(2)
  })

  test('that make no sense are refused', () => {
    for (const maxIterations of [-1, 1.5, Number.NaN])
      expect(() => loop({ maxIterations })).toThrow(
        expect.objectContaining({ code: 'INVALID_REQUEST' }),
      )
  })
})

function unanswered(messages: readonly Message[]): string[] {
  const answered = messages.filter(isToolResultMessage).flatMap(({ results }) => results)
  const ids = new Set(answered.map(({ toolCallId }) => toolCallId))
  const asked = messages.filter(isAssistantMessage).flatMap(({ toolCalls = [] }) => toolCalls)
  return asked.map(({ toolCallId }) => toolCallId).filter((id) => !ids.has(id))
}
