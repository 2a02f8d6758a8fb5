/**
 * An agent is a function of an input and a state: it gives a turn and a new state and keeps nothing.
 * So any state can be looked at, and continued from, twice if you like.
 *
 * Prints:
 *
 *     hello.ts is written.
 *     Errors are handled now.
 *     0 messages, then 4, then 8
 *     Option A: tabs. Option B: spaces. Both know 4 messages.
 */

// #region program
import { agent, AgentState } from '@skein/agents'
import { calls, says, scripted } from '@skein/ai/testing'
import { codeTools } from './code-tools.ts'

const { Bash, Read, Write } = codeTools(new Map())

// With a key: anthropic('claude-sonnet-4-5') of '@skein/ai/anthropic'.
const model = scripted([
  calls('write_file', { path: 'hello.ts', text: "console.log('hello')" }),
  says('hello.ts is written.'),
  calls('write_file', { path: 'hello.ts', text: 'try { … }' }),
  says('Errors are handled now.'),
  says('tabs'),
  says('spaces'),
])

const coder = agent({ model, tools: [Bash, Read, Write], system: 'You are a coding assistant.' })

const state0 = AgentState.initial()
const { turn: turn1, state: state1 } = await coder.generate('Create a hello world program', state0)
console.log(turn1.response.text)

const { turn: turn2, state: state2 } = await coder.generate('Add error handling', state1)
console.log(turn2.response.text)

const counts = [state0, state1, state2].map(({ messages }) => messages.length)
console.log(`${counts[0]} messages, then ${counts[1]}, then ${counts[2]}`)

// Branching is using a state again.
const { turn: a } = await coder.generate('Option A', state1)
const { turn: b } = await coder.generate('Option B', state1)
const known = model.requests.slice(-2).map(({ messages }) => messages.length - 1)
console.log(
  `Option A: ${a.response.text}. Option B: ${b.response.text}. Both know ${new Set(known).size === 1 ? known[0] : '?'} messages.`,
)
// #endregion program
