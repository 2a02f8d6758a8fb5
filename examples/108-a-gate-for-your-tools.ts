/**
 * One call puts the gate in front of the tools of an AI SDK, a LangGraph or an OpenAI Agents program. Here the model of an
 * AI SDK program asks for a refund: nothing is paid, and the call waits for a person.
 *
 * Prints:
 *
 *     waiting: refund {"order":"A-7"}
 *     paid: nothing
 *     LangGraph: refund, OpenAI Agents: refund
 */
import { tool as langChainTool } from '@langchain/core/tools'
import { interrupt } from '@langchain/langgraph'
import { tool as openAiTool } from '@openai/agents'
import { generateText, tool } from 'ai'
import { MockLanguageModelV4 } from 'ai/test'
import { z } from 'zod'
import { governAiSdk, governLangChain, governOpenAiAgents } from '@skein/governance/govern'

const paid: string[] = []
const inputSchema = z.object({ order: z.string() })
const name = 'refund'
const description = 'Pays an order back.'
const execute = ({ order }: { order: string }): number => paid.push(order)
const refund = tool({ description, inputSchema, execute })
const refundNode = langChainTool(execute, { name, description, schema: inputSchema })
const refundFunction = openAiTool({ name, description, parameters: inputSchema, execute })
// Says which development defaults are in use; left out, it is a warning of the process.
const onDefault = (): void => undefined

// #region gate
const rule = { risk: 'write_high_risk', rollback: 'impossible' } as const
const tools = governAiSdk({ tools: { refund: { tool: refund, ...rule } }, onDefault })
const graphTools = governLangChain({ tools: [{ tool: refundNode, ...rule }], interrupt, onDefault })
const agentTools = governOpenAiAgents({ tools: [{ tool: refundFunction, ...rule }], onDefault })
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
const namesOf = (list: readonly { name: string }[]): string => list.map((one) => one.name).join()
console.log(`LangGraph: ${namesOf(graphTools)}, OpenAI Agents: ${namesOf(agentTools)}`)
