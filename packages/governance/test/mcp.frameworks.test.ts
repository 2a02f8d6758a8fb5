import { expect, test } from 'vitest'
import { governedMcpTools } from '../src/adapters/mcp.ts'
import { identity, openBank, tiers, type Effects } from './bank.ts'
import { mcpClient } from './frameworks.ts'
import { init, kit, taskOf } from './support/kit.ts'

const risks = async (
  annotations: Record<string, object>,
  risk: 'read_only' | 'write_low_risk',
): Promise<string> => {
  const client = await mcpClient([], annotations)
  const [tool] = await governedMcpTools(client as never, { ledger: { risk } })
  return tool!.risk
}

test('UAICP-21 what a server says of its own tools raises a tier and never lowers it', async () => {
  expect(await risks({}, 'read_only')).toBe('read_only')
  expect(await risks({ ledger: { readOnlyHint: true } }, 'write_low_risk')).toBe('write_low_risk')
  expect(await risks({ ledger: { readOnlyHint: false } }, 'read_only')).toBe('write_low_risk')
  expect(await risks({ ledger: { destructiveHint: true } }, 'read_only')).toBe('write_high_risk')
  expect(await risks({ ledger: { destructiveHint: true, readOnlyHint: true } }, 'read_only')).toBe(
    'read_only',
  )
})

test('a tool that is not listed does not exist, one that is not there is an error', async () => {
  const client = await mcpClient([])
  const tools = await governedMcpTools(client as never, { ledger: { risk: 'read_only' } })
  expect(tools.map(({ name }) => name)).toEqual(['ledger'])
  await expect(
    governedMcpTools(client as never, { transfer: { risk: 'read_only' } }),
  ).rejects.toMatchObject({ code: 'TOOL_UNKNOWN', reasons: [{ subject: 'transfer' }] })
  await expect(governedMcpTools(client as never, { ledger: {} as never })).rejects.toMatchObject({
    code: 'RISK_UNDECLARED',
  })
})

test('pages are followed, results and errors are read as MCP says them', async () => {
  const answers: Record<string, unknown> = {
    text: { content: [{ type: 'text', text: 'one' }] },
    parts: {
      content: [
        { type: 'text', text: 'one' },
        { type: 'text', text: 'two' },
      ],
    },
    structured: { structuredContent: { sum: 1 }, content: [{ type: 'text', text: '{"sum":1}' }] },
    image: { content: [{ type: 'image', data: 'AA==', mimeType: 'image/png' }] },
    mixed: {
      content: [
        { type: 'text', text: 'one' },
        { type: 'image', data: 'AA==', mimeType: 'image/png' },
      ],
    },
    caption: { content: [{ type: 'image', text: 'a caption' }] },
    empty: {},
    failing: { isError: true, content: [{ type: 'text', text: 'no such account' }] },
  }
  const names = Object.keys(answers)
  const client = {
    listTools: async ({ cursor = '0' }: { cursor?: string } = {}) => {
      const next = Number(cursor) + 1
      const tool = { name: names[Number(cursor)]!, inputSchema: { type: 'object' } }
      return { tools: [tool], ...(next < names.length && { nextCursor: String(next) }) }
    },
    callTool: async ({ name }: { name: string }) => answers[name],
  }
  const table = Object.fromEntries(names.map((name) => [name, { risk: 'read_only' as const }]))
  const tools = async (_effects: Effects) => [
    ...(await governedMcpTools(client, table)),
    ...(await governedMcpTools((await mcpClient([])) as never, { ledger: tiers.ledger })),
  ]
  const bank = await openBank({ tools: tools as never })
  await bank.governor.run(bank.task, { identity, input: null }, async (run) => {
    const call = (name: string) =>
      run.call(
        bank.tools.find((tool) => tool.name === name)!,
        {} as never,
      )
    expect((await call('text')).result).toBe('one')
    expect((await call('parts')).result).toHaveLength(2)
    expect((await call('structured')).result).toEqual({ sum: 1 })
    for (const name of ['image', 'mixed', 'caption']) {
      const { content } = answers[name] as { content: unknown }
      expect((await call(name)).result).toEqual(content)
    }
    expect((await call('empty')).result).toEqual([])
    await expect(call('failing')).rejects.toMatchObject({
      code: 'TOOL_ERROR',
      reasons: [{ detail: expect.stringContaining('no such account') as string }],
    })
    return ''
  })
})

test('UAICP-02 a tool of a server keeps its description and parameters, and its call can be stopped', async () => {
  const pages: unknown[] = []
  const calls: unknown[] = []
  const parameters = { type: 'object', properties: { wire: { type: 'string' } } }
  const client = {
    listTools: async (page: { cursor?: string } = {}) => {
      pages.push(page)
      const named = { name: 'find', description: 'Finds a wire', inputSchema: parameters }
      return page.cursor === undefined
        ? { tools: [named], nextCursor: 'p2' }
        : { tools: [{ name: 'bare', inputSchema: {} }] }
    },
    callTool: async (...given: readonly unknown[]) => {
      calls.push(given)
      return { content: [] }
    },
  }
  const made = await kit()
  const tools = await governedMcpTools(client as never, {
    find: { risk: 'read_only' },
    bare: { risk: 'read_only' },
  })
  expect(pages).toEqual([{}, { cursor: 'p2' }])
  expect(tools.map(({ description, parameters: schema }) => [description, schema])).toEqual([
    ['Finds a wire', parameters],
    ['', {}],
  ])
  let signal: AbortSignal | undefined
  await made.governor.run(taskOf({ tools }), init, async (run) => {
    signal = run.signal
    return (await run.call(tools[0]!, { wire: 'W-1' })).result
  })
  expect(calls).toEqual([[{ name: 'find', arguments: { wire: 'W-1' } }, undefined, { signal }]])
})

test('UAICP-02 a server that lists pages without end is asked a thousand times', async () => {
  let asked = 0
  const client = {
    listTools: async () => ({ tools: [], nextCursor: String(++asked) }),
    callTool: async () => ({}),
  }
  await expect(governedMcpTools(client, { find: { risk: 'read_only' } })).rejects.toMatchObject({
    code: 'TOOL_UNKNOWN',
  })
  expect(asked).toBe(1000)
})
