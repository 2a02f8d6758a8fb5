/**
 * A state never changes: every operation gives a new one. It is plain data, so it can be stored as JSON
 * and continued in another process.
 *
 * Prints:
 *
 *     appended: Hello, Hi, Goodbye
 *     replaced: Fresh start
 *     the original still has: Hello, Hi
 *     s0: 0 messages, s1: user assistant, s2: user assistant user assistant
 *     restored the same: true; continues with 5 messages
 */

// #region program
import { agent, AgentState } from '@skein/agents'
import { AssistantMessage, UserMessage } from '@skein/ai'
import { says, scripted } from '@skein/ai/testing'

const texts = ({ messages }: AgentState): string => messages.map(({ text }) => text).join(', ')

const state = AgentState.initial()
  .withMessage(new UserMessage('Hello'))
  .withMessage(new AssistantMessage('Hi'))
console.log(`appended: ${texts(state.withMessages([new UserMessage('Goodbye')]))}`)
console.log(`replaced: ${texts(state.withContext([new UserMessage('Fresh start')]))}`)
console.log(`the original still has: ${texts(state)}`)

const model = scripted(() => says('Yes.'))
const helper = agent({ model })
const s0 = AgentState.initial()
const { state: s1 } = await helper.generate('Hello', s0)
await Promise.all([helper.generate('Option A', s0), helper.generate('Option B', s0)])
const { state: s2 } = await helper.generate('Continue', s1)
const types = ({ messages }: AgentState): string => messages.map(({ type }) => type).join(' ')
console.log(`s0: ${s0.messages.length} messages, s1: ${types(s1)}, s2: ${types(s2)}`)

const storage = new Map<string, string>()
storage.set(`state:${s2.id}`, JSON.stringify(s2.toJSON()))

const restored = AgentState.fromJSON(JSON.parse(storage.get(`state:${s2.id}`)!))
await helper.generate('Continue', restored)
const isSame = JSON.stringify(restored) === JSON.stringify(s2)
const sent = model.requests.at(-1)!.messages.length
console.log(`restored the same: ${isSame}; continues with ${sent} messages`)
// #endregion program
