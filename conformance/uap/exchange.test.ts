import { agent, AgentState, type ExecutionStrategy, type Middleware } from '@skein/agents'
import { loop, plan, react } from '@skein/agents/execution'
import {
  AssistantMessage,
  ToolResultMessage,
  UserMessage,
  type Message,
  type Turn,
} from '@skein/ai'
import { zeroUsage } from '@skein/ai/engine'
import { says, scripted } from '@skein/ai/testing'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { custom } from './support/custom-strategy.ts'

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

function turnOf(messages: readonly Message[]): Turn {
  return {
    messages,
    response: answer,
    text: answer.text,
    data: undefined,
    toolExecutions: [],
    usage: zeroUsage,
    usageByCycle: [],
    cycles: 0,
    stopReason: 'end_turn',
    warnings: [],
    sources: [],
    openCalls: [],
  }
}

/** A strategy whose turn has these messages, and which has added those to the state. */
function leaving(told: readonly Message[], kept: readonly Message[]): ExecutionStrategy {
  return {
    name: 'leaving',
    execute: async ({ state }) => ({
      turn: turnOf(told),
      state: state.withMessages(kept).withStep(3),
      stopReason: 'max_steps',
    }),
    stream: () => {
      throw new Error('not here')
    },
  }
}

test('UAP-044 UAP-045 whatever a strategy has added, ask() gives each message of the exchange once and in order', async () => {
  // Single messages, the whole exchange, and pieces of it, which a strategy may have added in any order.
  const pieces = exchange.map((_, at) => [exchange.slice(0, at + 1), exchange.slice(at)])
  const part = fc.constantFrom(...exchange, ...notes, ...pieces.flat())
  await fc.assert(
    fc.asyncProperty(fc.array(part, { maxLength: 8 }), fc.boolean(), async (parts, isWhole) => {
      const kept = parts.flat()
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

describe('a question that middleware has replaced', () => {
  const secret = new UserMessage('my password is hunter2')
  const redacted = new UserMessage('my password is ***')
  const sameId = new UserMessage('my password is ***', { id: secret.id })
  const redacting = (input: Message): Middleware => ({
    name: 'redacting',
    before: (context) => ({ ...context, input }),
  })
  const strategies = [loop(), react(), plan(), custom(), leaving([answer], [])]

  test.each(strategies)(
    'UAP-044 UAP-045 is in the state as the strategy got it, and once ($name)',
    async (execution) => {
      for (const input of [redacted, sameId]) {
        const model = scripted(({ structure }) => says(structure ? '{"steps":[]}' : 'fine'))
        const worker = agent({ model, execution, middleware: [redacting(input)] })
        for (const given of [secret, secret.text]) {
          const { state } = await worker.ask(given, before)
          const added = state.messages.slice(before.messages.length)
          expect(added[0]).toBe(input)
          expect(added.filter(({ text }) => text.startsWith('my password'))).toEqual([input])
        }
      }
    },
  )

  test('UAP-044 UAP-045 stays replaced when a later middleware fails and the run is recovered', async () => {
    const failing: Middleware = {
      name: 'failing',
      before: () => {
        throw new Error('down')
      },
      onError: ({ state }) => ({ turn: turnOf([answer]), state }),
    }
    const worker = agent({ model: scripted([]), middleware: [redacting(redacted), failing] })
    const { state } = await worker.ask(secret, before)
    expect(state.messages).toEqual([...before.messages, redacted, answer])
  })
})
