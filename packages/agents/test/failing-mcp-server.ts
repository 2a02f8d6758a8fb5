/** A server on stdin and stdout, written with the official SDK, whose tools end its process or answer too much. */
import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js'

const [log = ''] = process.argv.slice(2)
const server = new McpServer({ name: 'failing', version: '1.0.0' })
const text = (value: string) => ({ content: [{ type: 'text' as const, text: value }] })
const runs = (): number => (existsSync(log) ? readFileSync(log, 'utf8').length : 0)

/** Ends the process in the middle of its first call, and answers later ones. */
async function crashOnce(): Promise<ReturnType<typeof text>> {
  appendFileSync(log, 'x')
  if (runs() === 1) process.exit(1)
  return text(`run ${runs()}`)
}

if (existsSync(`${log}.down`)) process.exit(1)
server.registerTool('ping', { description: 'Answers.' }, () => text(`pong of ${process.pid}`))
server.registerTool('pay', { description: 'Pays.' }, crashOnce)
server.registerTool(
  'read',
  { description: 'Reads.', annotations: { readOnlyHint: true } },
  crashOnce,
)
server.registerTool('dump', { description: 'Answers 11 MB.' }, () => text('x'.repeat(11_000_000)))
server.registerTool('slow', { description: 'Reports progress.' }, async (extra) => {
  const { progressToken } = extra._meta ?? {}
  for (let progress = 1; progress <= 5; progress++) {
    await sleep(300)
    if (progressToken !== undefined)
      await extra.sendNotification({
        method: 'notifications/progress',
        params: { progressToken, progress, total: 5, message: `part ${progress}` },
      })
  }
  await sleep(20) // the client reads a notification only after what came with it
  return text('done')
})
await server.connect(new StdioServerTransport())
