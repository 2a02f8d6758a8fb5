import { calls, says, scripted } from '@skein/ai/testing'
import { defineAgent, type AgentDefinition } from '@skein/runtime'

/** Pays what the last message asks for: "refund O-7 25" or "wire O-8 40". The model is a script. */
const refunds: AgentDefinition = defineAgent({
  name: 'refunds',
  title: 'Refunds',
  description: 'Pays money back after a person has approved it.',
  instructions: 'Refund what the customer asks for.',
  model: scripted(({ messages }) => {
    const last = messages.at(-1)
    if (last?.type === 'tool_result') return says(String(last.results[0]?.result))
    const text = last?.type === 'user' ? last.text : ''
    const [, tool, order, amount] = /\b(refund|wire) (O-\d+) (\d+)/.exec(text) ?? []
    if (tool === undefined) return says('What shall I refund?')
    return calls(tool, { order: order!, amount: Number(amount) })
  }),
  tools: ['refund', 'wire'],
})

export default refunds
