import { agent, AgentState } from '@skein/agents'
import type { CheckpointStore } from '@skein/agents/checkpoint'
import { messageToJSON } from '@skein/ai'
import { calls, says, scripted } from '@skein/ai/testing'
import { measured, type Bench } from '../runner/bench.ts'

const rounds = 300
const tool = {
  name: 'look_up',
  description: 'Looks up.',
  parameters: { type: 'object' },
  run: ({ id }: { id: number }) => ({ id, title: 'A thread', tags: ['long', 'red'] }),
}

async function run(checkpoints?: CheckpointStore): Promise<AgentState> {
  const model = scripted((_, index) =>
    index < rounds ? calls('look_up', { id: index }) : says('.'),
  )
  const worker = agent({ model, tools: [tool], ...(checkpoints && { checkpoints }) })
  const { state } = await worker.generate('go', AgentState.initial())
  await worker.flush()
  return state
}

const bench: Bench = {
  title: `Agents: bytes of the checkpoint of one step, per message, on average over ${rounds} rounds`,
  baseline: 'messages as JSON',
  measure: 'returned',
  unit: 'bytes',
  warmups: 0,
  repetitions: 1,
  processes: 1,
  contenders: {
    'messages as JSON': {
      prepare: () => async () => {
        const { messages } = await run()
        const bytes = messages.reduce(
          (sum, one) => sum + JSON.stringify(messageToJSON(one)).length,
          0,
        )
        return measured(bytes / messages.length, messages.length)
      },
    },
    skein: {
      prepare: () => async () => {
        let bytes = 0
        let held = 0
        const state = await run({
          save: async (_, json) => {
            bytes += JSON.stringify(json).length
            held += json.messages.length
          },
          load: async () => null,
          delete: async () => {},
          list: async () => [],
        })
        return measured(bytes / held, state.messages.length)
      },
    },
  },
}
export default bench
