import { convertToModelMessages, type LanguageModel, stepCountIs, streamText, tool } from 'ai'
import { z } from 'zod'
import { governAiSdk } from '../../src/govern/index.ts'

const order = z.object({ order: z.string() })
const charge = tool({ inputSchema: order, execute: (input) => ({ charged: input.order }) })
const refund = tool({ inputSchema: order, execute: (input) => ({ refunded: input.order }) })

// prettier-ignore
const tools = governAiSdk({ tools: {
  charge: { tool: charge, risk: 'write_low_risk' },
  refund: { tool: refund, risk: 'write_high_risk', rollback: ({ order }) => ({ type: 'tool_call', target: 'charge', payload: { order } }) },
} })

export async function POST(request: Request, model: LanguageModel): Promise<Response> {
  const { messages } = await request.json()
  const result = streamText({
    model,
    messages: await convertToModelMessages(messages),
    tools,
    stopWhen: stepCountIs(5),
  })
  return result.toUIMessageStreamResponse()
}
