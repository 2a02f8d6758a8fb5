/** The desk with Mastra. */

// #region program
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { Mastra } from '@mastra/core'
import { Agent } from '@mastra/core/agent'
import { InMemoryStore } from '@mastra/core/storage'
import { createTool } from '@mastra/core/tools'
import { Memory } from '@mastra/memory'
import { z } from 'zod'

const vendor = createOpenAICompatible({
  name: 'vendor',
  baseURL: process.env.OPENAI_BASE_URL ?? 'https://api.openai.com/v1',
  apiKey: process.env.OPENAI_API_KEY,
})

const lookUpOrder = createTool({
  id: 'look_up_order',
  description: 'Finds out where an order is.',
  inputSchema: z.object({ order: z.string() }),
  execute: async ({ order }) => ({ order, status: 'on its way' }),
})
const refund = createTool({
  id: 'refund',
  description: 'Pays the money for an order back.',
  inputSchema: z.object({ order: z.string() }),
  requireApproval: true,
  execute: async ({ order }) => ({ refunded: order }),
})
const storage = new InMemoryStore()
const agent = new Agent({
  id: 'desk',
  name: 'desk',
  model: vendor('gpt-5-mini'),
  instructions: 'You are the support desk of a shop.',
  tools: { look_up_order: lookUpOrder, refund },
  memory: new Memory({ storage }),
})
const mastra = new Mastra({ agents: { desk: agent }, storage, logger: false })
const desk = mastra.getAgent('desk')
const memory = { thread: 'ada-1', resource: 'ada' }

// Streaming.
const stream = await desk.stream('I am Ada. Where is order O-7?', { memory })
for await (const text of stream.textStream) process.stdout.write(text)
process.stdout.write('\n')

// Memory is the thread of the storage.
const asked = await desk.stream('Please refund it.', { memory })
for await (const chunk of asked.fullStream)
  if (chunk.type === 'tool-call-approval')
    console.log(
      `waits for a person: ${chunk.payload.toolName} ${JSON.stringify(chunk.payload.args)}`,
    )

// Later, in any process with the same storage: the person has said yes.
const done = await desk.approveToolCall({ runId: asked.runId })
let text = ''
for await (const part of done.textStream) text += part
console.log(text)
// #endregion program
