import { convertToModelMessages, type LanguageModel, stepCountIs, streamText, tool } from 'ai'
import { z } from 'zod'

const order = z.object({ order: z.string() })
const charge = tool({ inputSchema: order, execute: (input) => ({ charged: input.order }) })
const refund = tool({ inputSchema: order, execute: (input) => ({ refunded: input.order }) })

const tools = {
  charge,
  refund,
}

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
