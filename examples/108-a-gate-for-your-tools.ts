/**
 * Five lines put the gate in front of the tools of an AI SDK program: the model asks for a refund, nothing is paid, and the
 * call waits for a person.
 *
 * Prints:
 *
 *     waiting: refund {"order":"A-7"}
 *     paid: nothing
 */
import { generateText, tool } from 'ai'
import { MockLanguageModelV4 } from 'ai/test'
import { z } from 'zod'
import { governAiSdk } from '@skein/governance/govern'

const paid: string[] = []
const inputSchema = z.object({ order: z.string() })
const lookUp = tool({ description: 'Finds an order.', inputSchema, execute: (order) => order })
const refund = tool({
  description: 'Pays an order back.',
  inputSchema,
  execute: ({ order }) => paid.push(order),
})

// #region gate
const tools = governAiSdk({
  tools: {
    look_up: { tool: lookUp, risk: 'read_only' },
    refund: { tool: refund, risk: 'write_high_risk', rollback: 'impossible' },
  },
  // Says which development defaults are in use; left out, it is a warning of the process.
  onDefault: () => undefined,
})
// #endregion gate

const model = new MockLanguageModelV4({
  doGenerate: {
    content: [
      { type: 'tool-call', toolCallId: 'call_1', toolName: 'refund', input: '{"order":"A-7"}' },
    ],
    finishReason: { unified: 'tool-calls', raw: undefined },
    usage: {
      inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
      outputTokens: { total: 1, text: 1, reasoning: 0 },
    },
    warnings: [],
  },
})
const { content } = await generateText({ model, tools, prompt: 'Refund A-7, please.' })
for (const part of content)
  if (part.type === 'tool-approval-request')
    console.log(`waiting: ${part.toolCall.toolName} ${JSON.stringify(part.toolCall.input)}`)
console.log(`paid: ${paid.join() || 'nothing'}`)
