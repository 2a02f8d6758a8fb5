/** Messages that a hook sends instead of the history hold only as long as the history grows. */
import { agent, AgentState } from '@skein/agents'
import { UserMessage, type Message } from '@skein/ai'
import { calls, says, scripted } from '@skein/ai/testing'
import { expect, test } from 'vitest'
import { add } from './support/tools.ts'

const texts = (messages: readonly Message[]) => messages.map(({ text }) => text)
const note = (text: string) => new UserMessage(text)

test.each([
  ['grows', (all: readonly Message[]) => all],
  ['has another end', (all: readonly Message[]) => [...all.slice(0, 2), note('b'), note('c')]],
  ['has another start', (all: readonly Message[]) => [note('b'), ...all.slice(1), note('c')]],
  ['is shorter', (all: readonly Message[]) => [all[0]!, note('b')]],
])('UAP-138 UAP-090 a history that %s in onStepEnd', async (name, change) => {
  const model = scripted([calls('add', { a: 1, b: 1 }), says('done')])
  const before = AgentState.initial().withMessages([note('1'), note('2'), note('3')])
  const worker = agent({
    model,
    tools: [add],
    strategy: {
      onInference: ({ cycle, messages }) =>
        cycle === 1 ? { messages: [note('summary'), messages.at(-1)!] } : undefined,
      onStepEnd: (step, { state }) =>
        step === 1 ? state.withContext(change(state.messages)) : undefined,
    },
  })
  const { state } = await worker.generate('go', before)
  const [first, second] = model.requests.map(({ messages }) => texts(messages))
  expect(first).toEqual(['summary', 'go'])
  const history = texts(state.messages.slice(0, -1))
  expect(second).toEqual(name === 'grows' ? ['summary', ...history.slice(3)] : history)
})
