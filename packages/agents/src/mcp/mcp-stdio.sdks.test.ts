import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { calls, says, scripted } from '@skein/ai/testing'
import type { ToolExecution } from '@skein/ai'
import { agent, AgentState, type AgentStreamEvent } from '../index.ts'
import { connectMcp, type McpConnection } from './index.ts'
import type { McpServerSource } from './mcp-connect-node.ts'
import type { McpToolsOptions } from './mcp-tools.ts'

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close()
})

async function connect(source: McpServerSource, options?: McpToolsOptions): Promise<McpConnection> {
  const connection = await connectMcp(source, options)
  closing.push(() => connection.close())
  return connection
}

/** Calls tools of the server, one after the other, in one run of an agent. */
async function use(connection: McpConnection, ...names: string[]): Promise<ToolExecution[]> {
  const model = scripted([...names.map((name) => calls(name, {})), says('done')])
  const worker = agent({ model, tools: connection.tools, middleware: [connection.middleware] })
  const { turn } = await worker.generate('go', AgentState.initial())
  return [...turn.toolExecutions]
}

describe('a server on stdin and stdout', { timeout: 60_000 }, () => {
  const script = fileURLToPath(new URL('../../test/failing-mcp-server.ts', import.meta.url))

  async function start(options?: McpToolsOptions): Promise<{ log: string; mcp: McpConnection }> {
    const dir = mkdtempSync(join(tmpdir(), 'mcp-'))
    closing.push(() => rmSync(dir, { recursive: true }))
    const log = join(dir, 'log')
    const args = ['--conditions=@skein/source', script, log]
    return { log, mcp: await connect({ command: process.execPath, args }, options) }
  }

  test('that crashes in a call is started again; the call is not repeated, and its outcome is called unknown', async () => {
    const { log, mcp } = await start()
    const [before, paid, after] = await use(mcp, 'ping', 'pay', 'ping')
    expect(paid).toMatchObject({
      isError: true,
      result: expect.stringMatching(/"pay".*outcome is unknown/),
    })
    expect(readFileSync(log, 'utf8')).toBe('x')
    expect(after).toMatchObject({ isError: false, result: expect.stringContaining('pong of') })
    expect(after!.result).not.toBe(before!.result)
  })

  test('repeats a call that its tool declares read-only', async () => {
    const { log, mcp } = await start()
    expect(await use(mcp, 'read')).toMatchObject([{ isError: false, result: 'run 2' }])
    expect(readFileSync(log, 'utf8')).toBe('xx')
  })

  test('whose answer is too long for one message loses that answer, not the connection', async () => {
    const { mcp } = await start()
    const [dumped, after] = await use(mcp, 'dump', 'ping')
    expect(dumped).toMatchObject({
      isError: true,
      result: expect.stringMatching(/longer than the limit.*outcome is unknown/),
    })
    expect(after).toMatchObject({ isError: false, result: expect.stringContaining('pong of') })
  })

  test('that does not start again gives one clear error, and is not started by each call', async () => {
    const { log, mcp } = await start()
    writeFileSync(`${log}.down`, '')
    const executions = await use(mcp, 'pay', 'ping', 'ping')
    const texts = executions.map(({ result }) => String(result))
    expect(executions.map(({ isError }) => isError)).toEqual([true, true, true])
    expect(texts[1]).toMatch(/MCP server .* cannot be reached: .* The call was not sent\./)
    expect(texts[2]).toBe(texts[1])
    const { tools } = mcp
    const ping = tools.find(({ name }) => name === 'ping')!
    const context = { signal: new AbortController().signal, toolCallId: 'a', toolName: 'ping' }
    const reading = ping.run({} as never, context as never) as AsyncGenerator
    await expect(reading.next()).rejects.toMatchObject({
      code: 'MCP_UNAVAILABLE',
      hint: expect.stringMatching(/next attempt .* in 1 s/),
    })
    rmSync(`${log}.down`)
    await vi.waitFor(
      async () => expect(await use(mcp, 'ping')).toMatchObject([{ isError: false }]),
      { timeout: 5000, interval: 100 },
    )
  })

  test('reports progress, which is shown and starts the time limit again', async () => {
    const { mcp } = await start({ timeoutMs: 1200 })
    const model = scripted([calls('slow', {}), says('done')])
    const run = agent({ model, tools: mcp.tools }).stream('go', AgentState.initial())
    const events: AgentStreamEvent[] = []
    for await (const event of run) events.push(event)
    const { turn } = await run.result
    expect(turn.toolExecutions).toMatchObject([{ isError: false, result: 'done' }])
    const progress = events.flatMap(({ uap }) =>
      uap?.type === 'tool_progress' ? [uap.data.output] : [],
    )
    expect(progress).toEqual(
      [1, 2, 3, 4, 5].map((part) => ({ progress: part, total: 5, message: `part ${part}` })),
    )
    const { mcp: bounded } = await start({ timeoutMs: 1200, maxTotalMs: 500 })
    expect(await use(bounded, 'slow')).toMatchObject([{ isError: true }])
  })
})
