/** A server on stdin and stdout, written with the official SDK: its list of tools grows, and it asks questions. */
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js'

const server = new McpServer({ name: 'grower', version: '1.0.0' })
const text = (value: string) => ({ content: [{ type: 'text' as const, text: value }] })

server.registerTool('grow', { description: 'Adds a tool.' }, () => {
  server.registerTool('grown', { description: 'Was added.' }, () => text('I am new'))
  return text('growing')
})
server.registerTool('book', { description: 'Books a seat.' }, async () => {
  const answer = await server.server.elicitInput({
    message: 'Which seat?',
    requestedSchema: {
      type: 'object',
      properties: { seat: { type: 'string' } },
      required: ['seat'],
    },
  })
  return text(answer.action === 'accept' ? `booked ${String(answer.content?.['seat'])}` : 'nothing')
})
await server.connect(new StdioServerTransport())
