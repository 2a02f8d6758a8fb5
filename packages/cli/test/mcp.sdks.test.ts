import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js'
import { describe, expect, onTestFinished, test } from 'vitest'
import { exampleAgents, skein, skeinBin, startDev, tempFolder } from './kit.ts'

async function connect(cwd: string, args: readonly string[]): Promise<[Client, () => number]> {
  let asked = 0
  const client = new Client({ name: 'test', version: '1' }, { capabilities: { elicitation: {} } })
  client.setRequestHandler(ElicitRequestSchema, () => {
    asked++
    return { action: 'accept', content: { decision: 'approve' } }
  })
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [skeinBin, 'mcp', ...args],
    cwd,
    stderr: 'ignore',
  })
  onTestFinished(() => client.close())
  await client.connect(transport)
  return [client, () => asked]
}

const ask = (client: Client, message: string) =>
  client.callTool({ name: 'ask', arguments: { message } })

describe('skein mcp with the client of @modelcontextprotocol/sdk', { timeout: 60_000 }, () => {
  test('serves an agent of a folder over standard input and output, with approvals', async () => {
    const cwd = tempFolder()
    const [client, asked] = await connect(cwd, [exampleAgents, '--agent', 'refunds'])
    expect((await client.listTools()).tools.map(({ name }) => name)).toContain('ask')
    const { structuredContent } = await ask(client, 'Please refund order O-7.')
    expect(structuredContent).toMatchObject({ status: 'completed', waiting: [] })
    expect(asked()).toBe(1)
    const { threadId } = structuredContent as { threadId: string }
    const now = await client.callTool({ name: 'status', arguments: { threadId } })
    expect(now.structuredContent).toEqual(structuredContent)
  })

  test('uses the server that runs in the folder', async () => {
    const cwd = tempFolder()
    await startDev([exampleAgents], { cwd })
    const [client, asked] = await connect(cwd, ['--agent', 'refunds'])
    const { structuredContent } = await ask(client, 'Please refund order O-7.')
    expect(structuredContent).toMatchObject({ status: 'completed' })
    expect(asked()).toBe(1)
  })

  test('refuses what is no agent and no JSON; writes nothing but messages', async () => {
    const cwd = tempFolder()
    const several = await skein(['mcp', exampleAgents], { cwd })
    expect(several).toMatchObject({ code: 2, stdout: '' })
    expect(several.stderr).toContain('Agents: ')
    const none = await skein(['mcp', exampleAgents, '--agent', 'nobody'], { cwd })
    expect(none).toMatchObject({ code: 1, stdout: '' })
    const input = 'nonsense\n{"jsonrpc":"2.0","id":7,"method":"ping"}\n[]\n'
    const { stdout } = await skein(['mcp', exampleAgents, '--agent', 'support'], { cwd, input })
    const lines = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { id: unknown })
    expect(lines).toContainEqual({ jsonrpc: '2.0', id: 7, result: {} })
    expect(lines.find(({ id }) => id === null)).toMatchObject({ error: { code: -32000 } })
  })
})
