import { AgentState } from '@skein/agents'
import { createAssistant } from './assistant.ts'
import { chooseModel } from './model.ts'

const assistant = createAssistant(chooseModel())

const first = await assistant.generate(
  'How many words has "A skein is a length of thread."?',
  AgentState.initial(),
)
console.log(first.turn.response.text)

// The state is the conversation: pass it on to continue, keep it to branch.
const second = await assistant.generate('Which sentence was it?', first.state)
console.log(second.turn.response.text)
