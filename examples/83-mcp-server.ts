/**
 * An agent as an MCP server: the client of the MCP SDK asks it, and the approval of a refund arrives as a
 * form that the person fills in.
 *
 * Prints:
 *
 *     tools: ask, continue, status
 *     form: refunds asks for approval of the call refund {"amount":25}. It cannot be undone.
 *     completed: Refunded 25.
 */

// #region program
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js'
import { createRuntime, defineAgent, defineTool } from '@skein/runtime'
import { serve } from '@skein/server'
import { calls, says, scripted } from '@skein/ai/testing'
import { z } from 'zod'

const refund = defineTool({
  name: 'refund',
  description: 'Pays money back.',
  args: z.object({ amount: z.number() }),
  risk: 'write_high_risk',
  rollback: 'impossible',
  execute: (_, { amount }) => `Refunded ${amount}.`,
})
const model = scripted(({ messages }) => {
  const last = messages.at(-1)!
  if (last.type === 'tool_result') return says(String(last.results[0]!.result))
  return calls('refund', { amount: 25 })
})
const runtime = await createRuntime({
  agents: [defineAgent({ name: 'refunds', instructions: 'You refund.', model, tools: [refund] })],
})
await runtime.start()
const server = await serve(runtime, { port: 0, auth: 'none' })

const client = new Client({ name: 'desk', version: '1' }, { capabilities: { elicitation: {} } })
client.setRequestHandler(ElicitRequestSchema, ({ params }) => {
  console.log(`form: ${params.message}`)
  return { action: 'accept', content: { decision: 'approve' } }
})
const address = new URL(`${server.url}/agents/refunds/mcp`)
await client.connect(new StreamableHTTPClientTransport(address))
const { tools } = await client.listTools()
console.log(`tools: ${tools.map(({ name }) => name).join(', ')}`)
const asked = { name: 'ask', arguments: { message: 'Please refund order O-7.' } }
const { structuredContent } = await client.callTool(asked)
const { status, text } = structuredContent as { status: string; text: string }
console.log(`${status}: ${text}`)
// #endregion program

await client.close()
await server.close()
await runtime.stop()
