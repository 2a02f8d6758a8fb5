/**
 * An agent uses the tools of an MCP server, and is served as a tool to MCP clients; both with the
 * official SDK, here connected in memory.
 *
 * Prints:
 *
 *     the library has: find_book
 *     Middlemarch is on shelf 3.
 *     our server has: librarian
 *       progress: Step 1
 *       progress: Step 2
 *     the client got: Middlemarch is on shelf 3.
 */

// #region program
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js'
import { Server } from '@modelcontextprotocol/sdk/server/index.js'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { CallToolRequestSchema, ListToolsRequestSchema } from '@modelcontextprotocol/sdk/types.js'
import { agent } from '@skein/agents'
import { mcpHandlers, mcpTools } from '@skein/agents/mcp'
import { calls, says, scripted } from '@skein/ai/testing'
import { z } from 'zod'

async function connect(server: Server | McpServer): Promise<Client> {
  const [ours, theirs] = InMemoryTransport.createLinkedPair()
  const client = new Client({ name: 'example', version: '1.0.0' })
  await Promise.all([server.connect(ours), client.connect(theirs)])
  return client
}

// Someone's MCP server.
const library = new McpServer({ name: 'library', version: '1.0.0' })
library.registerTool(
  'find_book',
  { description: 'Finds a book.', inputSchema: { title: z.string() } },
  ({ title }) => ({ content: [{ type: 'text', text: `${title}: shelf 3` }] }),
)
const libraryClient = await connect(library)

// #region tools
// Its tools in our agent, with the risks that we know. Without one, a runtime asks a person about each call.
const tools = await mcpTools(libraryClient, {
  risk: ({ name }) => (name === 'find_book' ? 'read_only' : undefined),
})
console.log(`the library has: ${tools.map(({ name }) => name).join()}`)
// #endregion tools
const librarian = agent({
  model: scripted(({ messages }) =>
    messages.at(-1)?.type === 'tool_result'
      ? says('Middlemarch is on shelf 3.')
      : calls('find_book', { title: 'Middlemarch' }),
  ),
  tools,
})
console.log((await librarian.query('Where is Middlemarch?')).text)

// Our agent as an MCP server.
const server = new Server({ name: 'agents', version: '1.0.0' }, { capabilities: { tools: {} } })
const handlers = mcpHandlers({
  agents: [
    {
      name: 'librarian',
      description: 'Answers questions about the library.',
      parameters: {
        type: 'object',
        properties: { question: { type: 'string' } },
        required: ['question'],
      },
      agent: librarian,
      prompt: ({ question }) => String(question),
    },
  ],
})
server.setRequestHandler(ListToolsRequestSchema, handlers.listTools)
server.setRequestHandler(CallToolRequestSchema, handlers.callTool)

const client = await connect(server)
const listed = await client.listTools()
console.log(`our server has: ${listed.tools.map(({ name }) => name).join()}`)
const { content } = await client.callTool(
  { name: 'librarian', arguments: { question: 'Where is Middlemarch?' } },
  undefined,
  { onprogress: ({ message }) => console.log(`  progress: ${message}`) },
)
console.log(`the client got: ${(content as { text: string }[])[0]?.text}`)
await Promise.all([client.close(), libraryClient.close()])
// #endregion program
