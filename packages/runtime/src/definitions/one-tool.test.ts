import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { agent, AgentState } from '@skein/agents'
import { deny, llm, tool, type Tool } from '@skein/ai'
import { calls, says, scripted } from '@skein/ai/testing'
import { defineTaskClass, governed, governor, standardPolicy } from '@skein/governance'
import { memoryLog } from '@skein/governance/audit'
import { createRuntime } from '../index.ts'
import { defineAgent } from './define-agent.ts'
import { definePrompt } from './define.ts'
import { defineTool } from './define-tool.ts'
import type { AnyTool, RuntimeToolContext } from './tool-definition.ts'

const parameters = z.object({ city: z.string() })
const base = { name: 'weather', description: 'The weather in a city.' }
const answer = (city: string) => ({ city, degrees: 21 })

const spellings: readonly [string, Tool][] = [
  ['tool()', tool({ ...base, parameters, run: ({ city }) => answer(city) })],
  [
    'tool() with JSON Schema',
    tool({
      ...base,
      parameters: { type: 'object', properties: { city: { type: 'string' } } },
      risk: 'read_only',
      run: ({ city }) => answer(String(city)),
    }),
  ],
  [
    'defineTool()',
    defineTool({
      ...base,
      args: parameters,
      risk: 'read_only',
      execute: (_state, { city }) => answer(city),
    }),
  ],
  [
    'an object of UPP’s shape',
    {
      ...base,
      parameters: { type: 'object', properties: { city: { type: 'string' } } },
      run: ({ city }: { city: string }) => answer(city),
    },
  ],
]

/** A model that calls the tool once, and then ends. */
const model = () => scripted([calls('weather', { city: 'Oslo' }), says('Mild.')])

const ways: Readonly<Record<string, (weather: Tool) => Promise<unknown>>> = {
  async llm(weather) {
    const turn = await llm({ model: model(), tools: [weather] }).generate('Oslo?')
    return turn.toolExecutions[0]?.result
  },
  async agent(weather) {
    const { turn } = await agent({ model: model(), tools: [weather] }).generate(
      'Oslo?',
      AgentState.initial(),
    )
    return turn.toolExecutions[0]?.result
  },
  async governed(weather) {
    const safe = governed(weather, { risk: 'read_only' })
    const gov = governor({ id: 'test', audit: memoryLog(), policy: standardPolicy })
    const task = defineTaskClass({ name: 'ask', tools: [safe], needs: [], verifiers: [] })
    const identity = { agent_id: 'a', owner_id: 'o', control_class: 'human-supervised' } as const
    const done = await gov.run(task, { identity, input: {} }, async (run) => {
      return (await run.call(safe, { city: 'Oslo' } as never)).result as never
    })
    return done.state === 'deliver' ? done.value : done
  },
  runtime: (weather) => inRuntime(weather),
  'runtime, governed': (weather) => inRuntime(governed(weather, { risk: 'read_only' })),
}

async function inRuntime(weather: AnyTool): Promise<unknown> {
  const prompt = definePrompt({ name: 'p', prompt: '', model: model(), tools: [weather] })
  const runtime = await createRuntime({ agents: [defineAgent({ name: 'a', sideA: { prompt } })] })
  try {
    await runtime.start()
    const { id } = await runtime.threads.create({ agent: 'a' })
    await runtime.threads.run(id, 'Oslo?')
    const events = await runtime.threads.events(id)
    const ended = events.map(({ event }) => event).find(({ type }) => type === 'tool_execution_end')
    return ended?.type === 'tool_execution_end' ? ended.result : undefined
  } finally {
    await runtime.stop()
  }
}

describe.each(spellings)('%s', (name, weather) => {
  const needsThread = name === 'defineTool()'
  const refused = needsThread ? ['llm', 'agent'] : []
  test.each(Object.keys(ways).filter((way) => !refused.includes(way)))(
    'gives the same result in %s',
    async (way) => {
      expect(await ways[way]!(weather)).toEqual(answer('Oslo'))
    },
  )

  test.each(refused)('%s has no thread, and names tool()', async (way) => {
    await expect(ways[way]!(weather)).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
      message: expect.stringContaining('"weather" is made by defineTool') as string,
      hint: expect.stringContaining('tool({ name, description, parameters, run(args) })') as string,
    })
  })
})

test('a tool finds the state of its thread in the context', async () => {
  const seen: unknown[] = []
  const run = (_args: unknown, { state }: RuntimeToolContext) => seen.push(state.agentId)
  const plain: Tool = { ...base, parameters: { type: 'object' }, run }
  await inRuntime(plain)
  await inRuntime(tool({ ...base, parameters, run }))
  await inRuntime(governed(tool({ ...base, parameters, run }), { risk: 'read_only' }))
  expect(seen).toEqual(['a', 'a', 'a'])
})

test('a tool that needs its thread says so where there is none', async () => {
  const needy = defineTool({
    ...base,
    args: parameters,
    risk: 'read_only',
    execute: (state) => state.threadId,
  })
  const context = { toolCallId: '1', toolName: 'weather', signal: AbortSignal.timeout(1000) }
  await expect(needy.run({ city: 'Oslo' }, context)).rejects.toMatchObject({
    code: 'TOOL_NOT_ALLOWED',
    message: expect.stringContaining('uses the state of its thread') as string,
  })
})

describe('the registry', () => {
  const registryOf = async (weather: AnyTool) => {
    const one = definePrompt({ name: 'one', prompt: '', model: model(), tools: [weather] })
    const two = definePrompt({
      name: 'two',
      prompt: '',
      model: model(),
      tools: [{ name: weather }],
    })
    const { createRegistry } = await import('../index.ts')
    return createRegistry({
      agents: [
        defineAgent({ name: 'a', sideA: { prompt: one, stopTool: weather } }),
        defineAgent({ name: 'b', sideA: { prompt: two, sessionStop: { name: weather } } }),
      ],
      tools: [weather],
    })
  }

  test.each(spellings)(
    'takes one object in many places as one tool: %s',
    async (_name, weather) => {
      const { tools, agent: find } = await registryOf(weather)
      expect([...tools.keys()]).toEqual(['weather'])
      expect(find('a').a.stopTool).toBe('weather')
      expect(find('b').a.sessionStop?.name).toBe('weather')
    },
  )

  test('a tool without a tier counts as a low-risk write', async () => {
    const { tools } = await registryOf(tool({ ...base, parameters, run: () => 1 }))
    expect(tools.get('weather')?.governance.risk).toBe('write_low_risk')
  })

  test('the tier of the tool counts, and all that governed() was given', async () => {
    const plain = tool({ ...base, parameters, run: () => 1 })
    const declared = await registryOf(
      tool({ ...base, parameters, risk: 'read_only', run: () => 1 }),
    )
    expect(declared.tools.get('weather')?.governance.risk).toBe('read_only')
    const probe = () => true
    const high = { risk: 'write_high_risk', rollback: 'impossible', probe } as const
    const safe = await registryOf(governed(plain, high))
    expect(safe.tools.get('weather')?.governance).toMatchObject(high)
  })

  test('a high-risk tool says how it is undone, or that it cannot be', async () => {
    const plain = tool({ ...base, parameters, run: () => 1 })
    const problem = /rollback: is required for write_high_risk.*'impossible'/
    await expect(registryOf(governed(plain, { risk: 'write_high_risk' }))).rejects.toThrow(problem)
    const declared = tool({ ...base, parameters, risk: 'write_high_risk', run: () => 1 })
    await expect(registryOf(declared)).rejects.toThrow(problem)
    const wrong = defineTool({
      ...base,
      risk: 'write_high_risk',
      rollback: 'never' as 'impossible',
      execute: () => 1,
    })
    await expect(registryOf(wrong)).rejects.toThrow(
      /must be a function, \{ tool \} or 'impossible'/,
    )
    const unknown = { ...base, risk: 'write_low_risk' as const, execute: () => 1 }
    for (const [rollback, said] of [
      [{ tool: 'wether' }, /rollback\.tool: .*"wether".*did you mean "weather"/],
      [{ tool: '' }, /rollback\.tool/],
      [{ args: () => ({}) }, /rollback\.tool: is required/],
      [{ tool: 'weather', args: 5 }, /rollback\.args: must be a function/],
      [{ tool: 'weather', arg: () => ({}) }, /rollback\.arg: is not a known field; did you mean "args"/],
    ] as const)
      await expect(registryOf(defineTool({ ...unknown, rollback: rollback as never }))).rejects.toThrow(said) // prettier-ignore
    await registryOf(defineTool({ ...unknown, rollback: { tool: 'weather' } }))
    await registryOf(governed(plain, { risk: 'write_high_risk', rollback: { tool: 'weather' } }))
    // The client itself decides about a tool that runs there.
    const atClient = defineTool({ ...base, risk: 'write_low_risk', rollback: { tool: 'weather' } })
    await expect(registryOf(atClient)).rejects.toThrow(/runs at the client, and cannot undo/)
    await registryOf(defineTool({ ...base, risk: 'write_high_risk' }))
  })
})

test('a denial with a reason keeps the tool from running', async () => {
  let runs = 0
  const guarded: Tool = {
    ...base,
    parameters: { type: 'object' },
    approval: () => deny('Not on Sundays'),
    run: () => (runs += 1),
  }
  expect(await inRuntime(guarded)).toEqual(expect.stringContaining('Not on Sundays'))
  expect(runs).toBe(0)
})
