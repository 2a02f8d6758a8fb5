/**
 * `ask` keeps a conversation in the state you hold, `query` is one question and nothing else.
 *
 * Prints:
 *
 *     Your name is Alice.
 *     4
 *     I do not know: I was asked 1 thing.
 *     ask leaves user, assistant; generate leaves user, assistant
 */

// #region program
import { agent, AgentState } from '@skein/agents'
import { scripted, says } from '@skein/ai/testing'

/** Answers from what it is sent, and so shows what it was sent. */
const model = scripted(({ messages }) => {
  const said = messages.map(({ text }) => text).join('\n')
  if (said.includes('2 + 2')) return says('4')
  if (said.includes('What is my name?'))
    return says(said.includes('My name is Alice') ? 'Your name is Alice.' : 'Who are you?')
  return says(`I do not know: I was asked ${messages.length} thing.`)
})
const helper = agent({ model })

const state0 = AgentState.initial()
const { state: state1 } = await helper.ask('My name is Alice', state0)
const { turn } = await helper.ask('What is my name?', state1)
console.log(turn.text)

console.log((await helper.query('What is 2 + 2?')).response.text)
console.log((await helper.query('What did I just ask?')).response.text)

// `query(x)` is `generate(x, AgentState.initial())` without the state, `ask` is `generate`.
const { state: same } = await helper.generate('My name is Alice', state0)
const types = ({ messages }: AgentState): string => messages.map(({ type }) => type).join(', ')
console.log(`ask leaves ${types(state1)}; generate leaves ${types(same)}`)
// #endregion program
