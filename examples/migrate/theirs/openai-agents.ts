/** The desk with the OpenAI Agents SDK. */

// #region program
import {
  Agent,
  run,
  RunState,
  setDefaultOpenAIClient,
  setOpenAIAPI,
  setTracingDisabled,
  tool,
} from '@openai/agents'
import OpenAI from 'openai'
import { z } from 'zod'

setDefaultOpenAIClient(new OpenAI({ baseURL: process.env.OPENAI_BASE_URL }))
setOpenAIAPI('chat_completions')
setTracingDisabled(true)

const lookUpOrder = tool({
  name: 'look_up_order',
  description: 'Finds out where an order is.',
  parameters: z.object({ order: z.string() }),
  execute: ({ order }) => ({ order, status: 'on its way' }),
})
const refund = tool({
  name: 'refund',
  description: 'Pays the money for an order back.',
  parameters: z.object({ order: z.string() }),
  needsApproval: true,
  execute: ({ order }) => ({ refunded: order }),
})
const desk = new Agent({
  name: 'desk',
  model: 'gpt-5-mini',
  instructions: 'You are the support desk of a shop.',
  tools: [lookUpOrder, refund],
})

// Streaming.
const stream = await run(desk, 'I am Ada. Where is order O-7?', { stream: true })
for await (const text of stream.toTextStream()) process.stdout.write(text)
await stream.completed
process.stdout.write('\n')

// Memory is the history of the run before.
const asked = await run(desk, [...stream.history, { role: 'user', content: 'Please refund it.' }])
const [waiting] = asked.interruptions
console.log(`waits for a person: refund ${waiting?.rawItem.arguments}`)
const stored = JSON.stringify(asked.state)

// Later, in any process: the person has said yes.
const state = await RunState.fromString(desk, stored)
for (const item of state.getInterruptions()) state.approve(item)
const done = await run(desk, state)
console.log(done.finalOutput)
// #endregion program
