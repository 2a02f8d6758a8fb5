import { expect, test } from 'vitest'
import { governedMcpTools } from '../src/adapters/mcp.ts'
import { identity, openBank, tiers, type Effects } from './bank.ts'
import { mcpClient } from './frameworks.ts'

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
  ).rejects.toMatchObject({ code: 'TOOL_UNKNOWN' })
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
    await expect(call('failing')).rejects.toMatchObject({
      code: 'TOOL_ERROR',
      reasons: [{ detail: expect.stringContaining('no such account') as string }],
    })
    return ''
  })
})
