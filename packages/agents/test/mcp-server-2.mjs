// A server on stdin and stdout, written with version 2 of the official SDK. Its first argument is the module that
// loads the SDK, the second a file in which it notes its calls.
import { appendFileSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'

const [loader, log] = process.argv.slice(2)
const { load } = await import(loader)
const { McpServer } = await load('@modelcontextprotocol/server')
const { StdioServerTransport } = await load('@modelcontextprotocol/server/stdio')

const server = new McpServer({ name: 'second', version: '2.0.0' })
const text = (value) => ({ content: [{ type: 'text', text: value }] })
server.registerTool('ping', { description: 'Answers.' }, () => text('pong'))
server.registerTool('crash', { description: 'Ends its process the first time.' }, () => {
  appendFileSync(log, 'x')
  if (readFileSync(log, 'utf8').length === 1) process.exit(1)
  return text('survived')
})
server.registerTool('slow', { description: 'Reports progress.' }, async (context) => {
  const { mcpReq } = context
  const progressToken = mcpReq._meta?.progressToken
  for (let progress = 1; progress <= 4; progress++) {
    await sleep(300)
    if (progressToken !== undefined)
      await mcpReq.notify({
        method: 'notifications/progress',
        params: { progressToken, progress, total: 4 },
      })
  }
  await sleep(20)
  return text('done')
})
server.registerTool('hang', { description: 'Never answers.' }, () => new Promise(() => {}))
await server.connect(new StdioServerTransport())
