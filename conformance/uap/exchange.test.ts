import { agent, AgentState, type ExecutionStrategy } from '@skein/agents'
import {
  AssistantMessage,
  ToolResultMessage,
  UserMessage,
  zeroUsage,
  type Message,
  type Turn,
} from '@skein/ai'
import { says, scripted } from '@skein/ai/testing'
import fc from 'fast-check'
import { expect, test } from 'vitest'

const question = new UserMessage('question')
const call = new AssistantMessage('', [{ toolCallId: 'c', toolName: 'look', arguments: {} }])
const result = new ToolResultMessage([{ toolCallId: 'c', toolName: 'look', result: 1 }])
const answer = new AssistantMessage('answer')
const exchange: readonly Message[] = [question, call, result, answer]
const notes = [new UserMessage('note 1'), new UserMessage('note 2')]
const before = AgentState.initial().withMessages([
  new UserMessage('earlier'),
  new AssistantMessage('fine'),
])

/** A strategy whose turn has these messages, and which has added those to the state. */
function leaving(told: readonly Message[], kept: readonly Message[]): ExecutionStrategy {
  const turn: Turn = {
    messages: told,
    response: answer,
    toolExecutions: [],
    usage: zeroUsage,
    usageByCycle: [],
    cycles: 0,
    stopReason: 'end_turn',
    warnings: [],
    sources: [],
    openCalls: [],
  }
  return {
    name: 'leaving',
    execute: async ({ state }) => ({
      turn,
      state: state.withMessages(kept).withStep(3),
      stopReason: 'max_steps',
    }),
    stream: () => {
      throw new Error('not here')
    },
  }
}

test('UAP-044 UAP-045 whatever a strategy has added, ask() gives each message of the exchange once and in order', async () => {
  const message = fc.constantFrom(...exchange, ...notes)
  await fc.assert(
    fc.asyncProperty(fc.array(message, { maxLength: 8 }), fc.boolean(), async (kept, isWhole) => {
      const told = isWhole ? exchange : exchange.slice(1)
      const worker = agent({ model: scripted([]), execution: leaving(told, kept) })
      const { turn, state, stopReason } = await worker.ask(question, before)
      const { messages } = state
      expect(messages.slice(0, 2)).toEqual(before.messages)
      expect(messages.filter((one) => exchange.includes(one))).toEqual(exchange)
      const others = kept.filter((one) => notes.includes(one as UserMessage))
      expect(messages.slice(2).filter((one) => !exchange.includes(one))).toEqual(others)
      expect([turn.messages, state.step, stopReason]).toEqual([told, 3, 'max_steps'])
    }),
    { seed: 45, numRuns: 300 },
  )
})

test('UAP-045 a question that the state has already is in it once after ask()', async () => {
  const worker = agent({ model: scripted([says('answer')]) })
  const { state } = await worker.ask(question, before.withMessage(question))
  expect(state.messages.map(({ text }) => text)).toEqual(['earlier', 'fine', 'question', 'answer'])
})
