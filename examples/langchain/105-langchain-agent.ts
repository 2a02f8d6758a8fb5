/**
 * `createAgent` of LangChain with governed tools of its own: a refund interrupts the agent until a person has
 * answered.
 *
 * Prints:
 *
 *     waits for a person: refund {"order":"A-7"}; refunded: nothing
 *     approved: "Refunded A-7."; refunded: A-7
 */
import { Command, interrupt, MemorySaver } from '@langchain/langgraph'
import { createAgent, tool } from 'langchain'
import { z } from 'zod'
import type { ApprovalRequest } from '@skein/governance'
import { governLangChain } from '@skein/governance/govern'
import { ScriptedModel } from './scripted-model.ts'

const refunds: string[] = []
const schema = z.object({ order: z.string() })
const charge = tool(async ({ order }) => `charged ${order}`, {
  name: 'charge',
  description: 'Charges an order again.',
  schema,
})
const refund = tool(
  async ({ order }) => {
    refunds.push(order)
    return `refunded ${order}`
  },
  { name: 'refund', description: 'Pays an order back.', schema },
)
const model = new ScriptedModel([{ name: 'refund', args: { order: 'A-7' } }], 'Refunded A-7.')
const checkpointer = new MemorySaver()
const thread = { configurable: { thread_id: 't1' } }

const tools = governLangChain({
  tools: [
    { tool: charge, risk: 'write_low_risk' },
    {
      tool: refund,
      risk: 'write_high_risk',
      rollback: ({ order }) => ({ type: 'tool_call', target: 'charge', payload: { order } }),
    },
  ],
  interrupt,
  onDefault: () => undefined,
})
// #region agent
const agent = createAgent({ model, tools, checkpointer })
// #endregion agent

await agent.invoke({ messages: [{ role: 'user', content: 'Refund A-7, please.' }] }, thread)
const { tasks } = await agent.graph.getState(thread)
const asked = tasks.flatMap(({ interrupts }) =>
  interrupts.map(({ value }) => value as ApprovalRequest),
)
const shown = asked.map(({ action }) => `${action.tool} ${JSON.stringify(action.args)}`)
console.log(`waits for a person: ${shown.join()}; refunded: ${refunds.join() || 'nothing'}`)

const resume = asked.map(({ id }) => ({ id, approved: true }))
const done = await agent.invoke(new Command({ resume }), thread)
console.log(`approved: "${done.messages.at(-1)?.text}"; refunded: ${refunds.join()}`)
