/** The desk with LangGraph. */

// #region program
import { tool } from '@langchain/core/tools'
import {
  Command,
  interrupt,
  MemorySaver,
  MessagesAnnotation,
  START,
  StateGraph,
} from '@langchain/langgraph'
import { ToolNode, toolsCondition } from '@langchain/langgraph/prebuilt'
import { ChatOpenAI } from '@langchain/openai'
import { z } from 'zod'

const schema = z.object({ order: z.string() })
const lookUpOrder = tool(async ({ order }) => ({ order, status: 'on its way' }), {
  name: 'look_up_order',
  description: 'Finds out where an order is.',
  schema,
})
const refund = tool(
  async ({ order }) => {
    if (interrupt({ refund: order }) !== 'approved') return { refused: order }
    return { refunded: order }
  },
  { name: 'refund', description: 'Pays the money for an order back.', schema },
)
const tools = [lookUpOrder, refund]
const model = new ChatOpenAI({
  model: 'gpt-5-mini',
  configuration: { baseURL: process.env.OPENAI_BASE_URL },
}).bindTools(tools)

const graph = new StateGraph(MessagesAnnotation)
  .addNode('model', async ({ messages }) => ({
    messages: await model.invoke([
      { role: 'system', content: 'You are the support desk of a shop.' },
      ...messages,
    ]),
  }))
  .addNode('tools', new ToolNode(tools))
  .addEdge(START, 'model')
  .addConditionalEdges('model', toolsCondition)
  .addEdge('tools', 'model')
  .compile({ checkpointer: new MemorySaver() })
const thread = { configurable: { thread_id: 'ada-1' } }
const says = (content: string) => ({ messages: [{ role: 'user', content }] })

// Streaming.
const question = says('I am Ada. Where is order O-7?')
for await (const [message] of await graph.stream(question, { ...thread, streamMode: 'messages' }))
  if (message.getType() === 'ai') process.stdout.write(message.text)
process.stdout.write('\n')

// Memory is the thread of the checkpointer.
await graph.invoke(says('Please refund it.'), thread)
const { tasks } = await graph.getState(thread)
const [waiting] = tasks.flatMap(({ interrupts }) => interrupts)
console.log(`waits for a person: refund ${JSON.stringify({ order: waiting?.value.refund })}`)

// Later, in any process with the same checkpointer: the person has said yes.
const { messages } = await graph.invoke(new Command({ resume: 'approved' }), thread)
console.log(messages.at(-1)?.text)
// #endregion program
