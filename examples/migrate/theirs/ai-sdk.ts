/** The desk with the AI SDK. */

// #region program
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { generateText, isStepCount, streamText, tool, type ModelMessage } from 'ai'
import { z } from 'zod'

const vendor = createOpenAICompatible({
  name: 'vendor',
  baseURL: process.env.OPENAI_BASE_URL ?? 'https://api.openai.com/v1',
  apiKey: process.env.OPENAI_API_KEY,
})

const tools = {
  look_up_order: tool({
    description: 'Finds out where an order is.',
    inputSchema: z.object({ order: z.string() }),
    execute: ({ order }) => ({ order, status: 'on its way' }),
  }),
  refund: tool({
    description: 'Pays the money for an order back.',
    inputSchema: z.object({ order: z.string() }),
    needsApproval: true,
    execute: ({ order }) => ({ refunded: order }),
  }),
}
const settings = {
  model: vendor('gpt-5-mini'),
  system: 'You are the support desk of a shop.',
  tools,
  stopWhen: isStepCount(5),
}

// Streaming.
const messages: ModelMessage[] = [{ role: 'user', content: 'I am Ada. Where is order O-7?' }]
const stream = streamText({ ...settings, messages })
for await (const text of stream.textStream) process.stdout.write(text)
process.stdout.write('\n')

// Memory is the list of messages.
messages.push(...(await stream.response).messages, { role: 'user', content: 'Please refund it.' })
const asked = await generateText({ ...settings, messages })
messages.push(...asked.response.messages)
const [waiting] = asked.content.filter((part) => part.type === 'tool-approval-request')
console.log(`waits for a person: refund ${JSON.stringify(waiting?.toolCall.input)}`)
const stored = JSON.stringify(messages)

// Later, in any process: the person has said yes.
const approval = {
  type: 'tool-approval-response',
  approvalId: waiting!.approvalId,
  approved: true,
} as const
const later = [...JSON.parse(stored), { role: 'tool', content: [approval] }] as ModelMessage[]
const { text } = await generateText({ ...settings, messages: later })
console.log(text)
// #endregion program
