/**
 * LangGraph with governed tools: a refund interrupts the graph, and three resumes of the same checkpoint have
 * one effect. Another governor over the same log continues where the first one waited.
 *
 * Prints:
 *
 *     waits for a person: refund {"order":"A-7"}; refunded: nothing
 *     approved: "Refunded A-7."; refunded: A-7
 *     the same checkpoint twice more; refunded: A-7
 */
import { AIMessage, type BaseMessage } from '@langchain/core/messages'
import { tool } from '@langchain/core/tools'
import { Command, END, interrupt, MemorySaver } from '@langchain/langgraph'
import { MessagesAnnotation, START, StateGraph } from '@langchain/langgraph'
import { ToolNode } from '@langchain/langgraph/prebuilt'
import { z } from 'zod'
import type { ApprovalRequest } from '@skein/governance'
import { memoryPayloads } from '@skein/governance'
import { memoryLog } from '@skein/governance/audit'
import { governLangChain } from '@skein/governance/govern'

const refunds: string[] = []
const stored = { audit: memoryLog(), payloads: memoryPayloads() }
// In an application: a checkpointer over a database.
const checkpointer = new MemorySaver()
const thread = { configurable: { thread_id: 't1' } }

// #region tools
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
// #endregion tools

/** A scripted model, which calls the refund and then says what it received. */
function model({ messages }: { messages: BaseMessage[] }) {
  const told = messages.some(({ content }) => String(content).startsWith('refunded'))
  const call = { name: 'refund', args: { order: 'A-7' }, id: `call_${crypto.randomUUID()}` }
  const tool_calls = told ? [] : [{ ...call, type: 'tool_call' as const }]
  return { messages: [new AIMessage({ content: told ? 'Refunded A-7.' : '', tool_calls })] }
}

// #region governed
function build() {
  const tools = governLangChain({
    tools: [
      { tool: charge, risk: 'write_low_risk' },
      {
        tool: refund,
        risk: 'write_high_risk',
        rollback: ({ order }) => ({
          type: 'tool_call',
          target: 'charge',
          payload: { order },
        }),
      },
    ],
    interrupt,
    ...stored,
    onDefault: () => undefined,
  })
  return new StateGraph(MessagesAnnotation)
    .addNode('model', model)
    .addNode('tools', new ToolNode(tools))
    .addEdge(START, 'model')
    .addConditionalEdges('model', ({ messages }) => (messages.at(-1)?.text === '' ? 'tools' : END))
    .addEdge('tools', 'model')
    .compile({ checkpointer })
}
// #endregion governed

// #region ask
await build().invoke({ messages: [{ role: 'user', content: 'Refund A-7, please.' }] }, thread)
const paused = await build().getState(thread)
const asked = paused.tasks.flatMap(({ interrupts }) =>
  interrupts.map(({ value }) => value as ApprovalRequest),
)
// #endregion ask
const shown = asked.map(({ action }) => `${action.tool} ${JSON.stringify(action.args)}`)
console.log(`waits for a person: ${shown.join()}; refunded: ${refunds.join() || 'nothing'}`)

// #region approve
// The person has answered. The graph is rebuilt, as another process would do.
const resume = asked.map(({ id }) => ({ id, approved: true }))
const done = await build().invoke(new Command({ resume }), paused.config)
// #endregion approve
console.log(`approved: "${done.messages.at(-1)?.text}"; refunded: ${refunds.join()}`)
for (let time = 0; time < 2; time++) await build().invoke(new Command({ resume }), paused.config)
console.log(`the same checkpoint twice more; refunded: ${refunds.join()}`)
