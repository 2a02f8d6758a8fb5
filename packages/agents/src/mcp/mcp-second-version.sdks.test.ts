import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, describe, expect, test } from 'vitest'
import { calls, says, scripted } from '@skein/ai/testing'
import type { Tool } from '@skein/ai'
import { peersOf } from '../../../../scripts/peers.ts'
import { agent, AgentState, type AgentStreamEvent } from '../index.ts'
import { connectMcp, mcpTools } from './index.ts'
import type { McpClient, McpToolsOptions } from './mcp-tools.ts'

const peers = peersOf('sdks')
const script = fileURLToPath(new URL('../../test/mcp-server-2.mjs', import.meta.url))

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close()
})

function command(): { command: string; args: string[]; log: string } {
  const dir = mkdtempSync(join(tmpdir(), 'mcp-'))
  closing.push(() => rmSync(dir, { recursive: true }))
  const log = join(dir, 'log')
  return { command: process.execPath, args: [script, peers.loader, log], log }
}

async function run(
  tools: readonly Tool[],
  ...names: string[]
): Promise<{ results: [unknown, boolean][]; progress: unknown[] }> {
  const model = scripted([...names.map((name) => calls(name, {})), says('done')])
  const stream = agent({ model, tools }).stream('go', AgentState.initial())
  const events: AgentStreamEvent[] = []
  for await (const event of stream) events.push(event)
  const { turn } = await stream.result
  return {
    results: turn.toolExecutions.map(({ result, isError }) => [result, isError]),
    progress: events.flatMap(({ uap }) => (uap?.type === 'tool_progress' ? [uap.data.output] : [])),
  }
}

const fourReports = [1, 2, 3, 4].map((progress) => ({ progress, total: 4 }))

describe.skipIf(!peers.isInstalled)('version 2 of the MCP SDK', { timeout: 60_000 }, () => {
  test('a server: a crash, a new process and progress', async () => {
    const { log, ...source } = command()
    const mcp = await connectMcp(source, { timeoutMs: 2000 })
    closing.push(() => mcp.close())
    const { results, progress } = await run(mcp.tools, 'ping', 'crash', 'ping', 'slow')
    expect(results).toEqual([
      ['pong', false],
      [expect.stringMatching(/outcome is unknown/), true],
      ['pong', false],
      ['done', false],
    ])
    expect(progress).toEqual(fourReports)
    expect(readFileSync(log, 'utf8')).toBe('x')
  })

  test('a client: time limits, progress and an abort reach the server', async () => {
    const { Client } = await peers.load<{
      Client: new (info: object) => McpClient & {
        connect(transport: unknown): Promise<void>
        close(): Promise<void>
      }
    }>('@modelcontextprotocol/client')
    const { StdioClientTransport } = await peers.load<{
      StdioClientTransport: new (source: object) => unknown
    }>('@modelcontextprotocol/client/stdio')
    const client = new Client({ name: 'test', version: '1.0.0' })
    await client.connect(new StdioClientTransport(command()))
    closing.push(() => client.close())
    const tools = (options?: McpToolsOptions): Promise<Tool[]> => mcpTools(client, options)
    const { results, progress } = await run(await tools({ timeoutMs: 1000 }), 'slow', 'hang')
    expect(results).toEqual([
      ['done', false],
      [expect.stringMatching(/timed out/i), true],
    ])
    expect(progress).toEqual(fourReports)
    const hanging = agent({ model: scripted([calls('hang', {})]), tools: await tools() })
    const signal = AbortSignal.timeout(100)
    await expect(hanging.generate('go', AgentState.initial(), { signal })).rejects.toMatchObject({
      code: 'CANCELLED',
    })
  })
})
