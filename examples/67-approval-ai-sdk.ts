/**
 * The AI SDK with governed tools: a refund waits for a person, the process ends, and another one continues.
 *
 * Prints:
 *
 *     process 1 waits for a person: refund {"order":"A-7"}; refunded: nothing
 *     process 2, approved: "Refunded A-7."; refunded: A-7
 *     process 2, the same approval again; refunded: A-7
 */
import { generateText, type ModelMessage, stepCountIs, tool } from 'ai'
import { MockLanguageModelV4 } from 'ai/test'
import { z } from 'zod'
import { governAiSdk } from '@skein/governance/govern'
import { inTwoProcesses } from './two-processes.ts'

const shop = await inTwoProcesses(import.meta.filename)
const { audit, payloads } = shop

// #region tools
const charge = tool({
  description: 'Charges an order again.',
  inputSchema: z.object({ order: z.string() }),
  execute: ({ order }) => ({ charged: order }),
})
const refund = tool({
  description: 'Pays an order back.',
  inputSchema: z.object({ order: z.string() }),
  execute: ({ order }) => shop.refund(order),
})
// #endregion tools

// #region governed
const tools = governAiSdk({
  tools: {
    charge: { tool: charge, risk: 'write_low_risk' },
    refund: {
      tool: refund,
      risk: 'write_high_risk',
      rollback: ({ order }) => ({ type: 'tool_call', target: 'charge', payload: { order } }),
    },
  },
  // Where the log and the arguments are kept; without these they are in memory.
  audit,
  payloads,
  // Says which development defaults are in use; left out, it is a warning of the process.
  onDefault: () => undefined,
})
// #endregion governed

// #region ask
async function answer(messages: ModelMessage[]) {
  const result = await generateText({ model, messages, tools, stopWhen: stepCountIs(5) })
  const waiting = result.content.filter((part) => part.type === 'tool-approval-request')
  return { waiting, text: result.text, messages: [...messages, ...result.responseMessages] }
}
// #endregion ask

/** A scripted model, which calls the refund and then says what it received. */
const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
}
const model = new MockLanguageModelV4({
  doGenerate: async ({ prompt }) => {
    const told = JSON.stringify(prompt).includes('"refunded":"A-7"')
    const call = {
      type: 'tool-call',
      toolCallId: `call_${crypto.randomUUID()}`,
      toolName: 'refund',
      input: '{"order":"A-7"}',
    } as const
    return {
      content: [told ? { type: 'text', text: 'Refunded A-7.' } : call],
      finishReason: { unified: told ? 'stop' : 'tool-calls', raw: undefined },
      usage,
      warnings: [],
    }
  },
})

if (shop.number === 1) {
  const { waiting, messages } = await answer([{ role: 'user', content: 'Refund A-7, please.' }])
  const asked = waiting.map(
    ({ toolCall }) => `${toolCall.toolName} ${JSON.stringify(toolCall.input)}`,
  )
  const refunded = shop.refunds() || 'nothing'
  console.log(`process 1 waits for a person: ${asked.join()}; refunded: ${refunded}`)
  shop.save('messages', JSON.stringify(messages))
  shop.save('approval', waiting[0]?.approvalId ?? '')
} else {
  // #region approve
  // The person has answered: `useChat` sends the history with this part, here we add it.
  const approvalId = shop.load('approval')
  const messages: ModelMessage[] = [
    ...(JSON.parse(shop.load('messages')) as ModelMessage[]),
    { role: 'tool', content: [{ type: 'tool-approval-response', approvalId, approved: true }] },
  ]
  const done = await answer(messages)
  // #endregion approve
  console.log(`process 2, approved: "${done.text}"; refunded: ${shop.refunds()}`)
  await answer(messages)
  console.log(`process 2, the same approval again; refunded: ${shop.refunds()}`)
}
await audit.close()
