/**
 * Asks a model a question, then another one with the first exchange as history. The model is scripted,
 * so this needs no key; put `anthropic('claude-sonnet-4-5')` or any other in its place.
 *
 * Prints:
 *
 *     Paris.
 *     About two million people.
 *     2 messages before, 4 after
 */

// #region program
import { llm, type Message } from '@skein/ai'
import { says, scripted } from '@skein/ai/testing'

const model = scripted([says('Paris.'), says('About two million people.')])
const guide = llm({ model, system: 'Answer in one sentence.' })

const first = await guide.generate('What is the capital of France?')
console.log(first.text)

// The history is yours: a turn holds the question and everything that was answered.
const history: Message[] = [...first.messages]
const second = await guide.generate(history, 'How many people live there?')
console.log(second.text)
console.log(`${history.length} messages before, ${history.length + second.messages.length} after`)
// #endregion program
