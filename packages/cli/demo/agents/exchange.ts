import { calls, scripted } from '@skein/ai/testing'
import { defineAgent, definePrompt, type AgentDefinition } from '@skein/runtime'

/** Exchanges a lamp: charges the difference, then reserves the new one, which fails. The model is a script. */
const exchange: AgentDefinition = defineAgent({
  name: 'exchange',
  title: 'Exchanges',
  description: 'Exchanges an order for a better one.',
  sideA: {
    prompt: definePrompt({
      name: 'exchange',
      prompt: 'Exchange the lamp.',
      model: scripted([
        calls('charge', { order: 'O-9', amount: 15 }),
        calls('reserve', {}),
        ({ messages }) => {
          const last = messages.at(-1)
          const why = last?.type === 'tool_result' ? String(last.results[0]?.result) : 'no reason'
          return calls('give_up', { why })
        },
      ]),
      tools: ['charge', 'reserve', 'give_up'],
    }),
    sessionFail: { name: 'give_up', messageProperty: 'why' },
  },
})

export default exchange
