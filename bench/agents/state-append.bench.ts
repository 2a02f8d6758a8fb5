import { AgentState } from '@skein/agents'
import { UserMessage } from '@skein/ai'
import type { Bench } from '../runner/bench.ts'

const count = 20_000
const messages = Array.from({ length: count }, (_, index) => new UserMessage(`message ${index}`))

const bench: Bench = {
  title: `Agents: ${count.toLocaleString('en')} messages appended one by one, each to a new state`,
  baseline: 'one array, changed',
  amount: { value: count, unit: 'messages' },
  warmups: 1,
  repetitions: 5,
  contenders: {
    'one array, changed': {
      prepare: () => () => {
        const list: UserMessage[] = []
        for (const message of messages) list.push(message)
        return list.length
      },
    },
    'a copy each time': {
      prepare: () => () => {
        let list: readonly UserMessage[] = []
        for (const message of messages) list = [...list, message]
        return list.length
      },
    },
    skein: {
      prepare: () => () => {
        let state = AgentState.initial()
        for (const message of messages) state = state.withMessage(message)
        return state.messages.length
      },
    },
  },
}
export default bench
