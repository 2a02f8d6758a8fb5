import { expect, test } from 'vitest'
import { mcpTools } from '@skein/agents/mcp'
import { calls, says, scripted } from '@skein/ai/testing'
import { createRuntime } from '../runtime.ts'
import { toolFrom } from './define-tool.ts'
import { defineAgent } from './define-agent.ts'
import { createRegistry } from './load/registry.ts'
import type { AnyTool } from './tool-definition.ts'

type McpToolsOptions = NonNullable<Parameters<typeof mcpTools>[1]>

const ran: string[] = []

/** A client whose server has one tool with these hints. */
async function toolsOf(
  annotations?: Readonly<Record<string, boolean | undefined>>,
  options?: McpToolsOptions,
): Promise<readonly AnyTool[]> {
  const inputSchema = { type: 'object' }
  const client = {
    listTools: async () => ({ tools: [{ name: 'wipe', inputSchema, annotations }] }),
    async callTool({ name }: { name: string }) {
      ran.push(name)
      return { content: [{ type: 'text', text: 'wiped' }] }
    },
  }
  return mcpTools(client, options)
}

const agentWith = (tools: readonly AnyTool[], script = [calls('wipe'), says('Done.')]) =>
  defineAgent({ name: 'support', instructions: 'Help.', model: scripted(script), tools })

function riskOf(tools: readonly AnyTool[]): unknown {
  const { governance } = createRegistry({ agents: [agentWith(tools)] }).tools.get('wipe')!
  return [governance.risk, governance.rollback]
}

test.each([
  undefined,
  { readOnlyHint: true },
  { destructiveHint: false },
  { idempotentHint: true },
])(
  'a tool without a declared risk waits for a person, whatever its server says: %j',
  async (hints) => {
    const tools = await toolsOf(hints)
    expect(riskOf(tools)).toEqual(['write_high_risk', 'impossible'])
    const agent = agentWith(tools)
    const runtime = await createRuntime({ agents: [agent] })
    await runtime.start()
    const { id } = await runtime.threads.create({ agent })
    const { outcome, waiting } = await runtime.threads.run(id, 'Go')
    expect(outcome).toBe('waiting')
    expect(waiting).toMatchObject([
      { toolName: 'wipe', risk: 'write_high_risk', isIrreversible: true },
    ])
    expect(ran).toEqual([])
    await runtime.stop()
  },
)

test.each([
  ['read_only', undefined, 'read_only'],
  ['read_only', { readOnlyHint: true }, 'read_only'],
  ['read_only', { readOnlyHint: false }, 'write_low_risk'],
  ['read_only', { destructiveHint: true }, 'write_high_risk'],
  ['write_low_risk', { readOnlyHint: true }, 'write_low_risk'],
  ['write_high_risk', { readOnlyHint: true, destructiveHint: false }, 'write_high_risk'],
] as const)('declared %s with the hints %j is %s', async (declared, hints, risk) => {
  expect(riskOf(await toolsOf(hints, { risk: () => declared }))).toContain(risk)
})

test('hints decide for a server that is trusted, but never against the application', async () => {
  const trusted = { trustsHints: true }
  expect(riskOf(await toolsOf({ readOnlyHint: true }, trusted))).toContain('read_only')
  expect(riskOf(await toolsOf({ destructiveHint: false }, trusted))).toContain('write_low_risk')
  expect(riskOf(await toolsOf(undefined, trusted))).toContain('write_high_risk')
  const declared = { ...trusted, risk: () => 'read_only' as const }
  expect(riskOf(await toolsOf({ destructiveHint: true }, declared))).toContain('read_only')
})

test('loading warns of an undeclared risk with the line that declares it; toolFrom declares it too', async () => {
  const tools = await toolsOf()
  const { warnings } = createRegistry({ agents: [agentWith(tools)] })
  expect(warnings).toMatchObject([
    {
      subject: 'tool "wipe"',
      field: 'risk',
      message: expect.stringContaining(
        "mcpTools(client, { risk: ({ name }) => (name === 'wipe' ? 'read_only' : undefined) })",
      ) as string,
    },
  ])
  const [tool] = await mcpTools({
    listTools: async () => ({ tools: [{ name: 'wipe', inputSchema: { type: 'object' } }] }),
    callTool: async () => ({}),
  })
  const agents = [agentWith([toolFrom(tool!, { risk: 'write_low_risk' })])]
  expect(createRegistry({ agents }).warnings).toEqual([])
})
