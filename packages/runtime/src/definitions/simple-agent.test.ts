import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { tool } from '@skein/ai'
import { calls, says, scripted } from '@skein/ai/testing'
import { createRuntime } from '../runtime.ts'
import { defineAgent, withModel } from './define-agent.ts'
import { definePrompt } from './define.ts'
import { asSubagent } from './as-subagent.ts'
import { catalog } from './load/catalog.ts'
import { createRegistry } from './load/registry.ts'

const model = scripted([says('Hello.')])
const findOrder = tool({
  name: 'find_order',
  description: 'Finds an order.',
  parameters: z.object({ id: z.string() }),
  risk: 'read_only',
  run: ({ id }) => `order ${id}`,
})

describe('an agent with instructions', () => {
  test('is the agent that the specification spells with side A and a prompt', () => {
    const output = z.object({ title: z.string() })
    const ofAgent = { title: 'Support', env: { A: 'a' }, budget: { maxTokens: 9 }, hooks: [] }
    const ofPrompt = { model, tools: [findOrder], output, parallelToolCalls: true }
    const simple = defineAgent({
      name: 'support',
      instructions: 'Help.',
      label: 'Support desk',
      maxSteps: 7,
      ...ofAgent,
      ...ofPrompt,
    })
    const prompt = definePrompt({ name: 'support', prompt: 'Help.', ...ofPrompt })
    const spelled = defineAgent({
      name: 'support',
      sideA: { prompt, label: 'Support desk', maxSteps: 7 },
      ...ofAgent,
    })
    expect(simple).toEqual(spelled)
    const hashOf = (agent: typeof simple): unknown =>
      createRegistry({ agents: [agent] }).agent('support').hash
    expect(hashOf(simple)).toBe(hashOf(spelled))
  })

  test('answers with data of its output, without a second parse', async () => {
    const agent = defineAgent({
      name: 'support',
      instructions: 'Answer as a ticket.',
      model: scripted([calls('find_order', { id: '7' }), says('{"title":"Late parcel"}')]),
      tools: [findOrder],
      output: z.object({ title: z.string() }),
    })
    const runtime = await createRuntime({ agents: [agent] })
    await runtime.start()
    const thread = await runtime.threads.create({ agent })
    const { data } = await runtime.threads.run(thread.id, 'Where is it?')
    expect(data?.title.toUpperCase()).toBe('LATE PARCEL')
    await runtime.stop()
  })

  test.each([
    [{ name: 'x', instructions: 'Help.' }, 'model', 'is required, e.g. anthropic('],
    [{ name: 'x', model }, 'instructions', 'is required: the text of the prompt'],
    [
      { name: 'x', instructions: 'Help.', sideA: { prompt: 'x' } },
      'instructions',
      'must be left out, because sideA is given',
    ],
    [{ name: 'x' }, 'sideA', 'is required, or instructions and model in its place'],
    [
      { name: 'x', instructions: 'Help.', model, prompt: 'Help.' },
      'prompt',
      'is not a known field; write instructions',
    ],
    [
      { name: 'x', instructions: 'Help.', model, tool: [] },
      'tool',
      'is not a known field; did you mean "tools"?',
    ],
    [{ name: 'x', sideA: { prompt: 'x' }, model }, 'model', 'it belongs to the prompt of sideA'],
  ])('%j names the field %s', (options, field, message) => {
    const define = (): unknown => createRegistry({ agents: [defineAgent(options as never)] })
    const problem = {
      subject: 'agent "x"',
      field,
      message: expect.stringContaining(message) as string,
    }
    expect(define).toThrow(
      expect.objectContaining({
        code: 'DEFINITION_INVALID',
        problems: expect.arrayContaining([expect.objectContaining(problem)]) as unknown,
      }) as Error,
    )
  })
})

describe('withModel', () => {
  test('changes the model of a side, and nothing else', async () => {
    const vendor = scripted([], { modelId: 'vendor' })
    const agent = defineAgent({
      name: 'support',
      instructions: 'Help.',
      model: vendor,
      tools: [findOrder],
    })
    const script = scripted([says('From the script.')])
    const changed = withModel(agent, script)
    expect(changed).toEqual(
      defineAgent({ name: 'support', instructions: 'Help.', model: script, tools: [findOrder] }),
    )
    const runtime = await createRuntime({ agents: [changed] })
    await runtime.start()
    const { id } = await runtime.threads.create({ agent: changed })
    expect((await runtime.threads.run(id, 'Hi')).text).toBe('From the script.')
    expect(vendor.requests).toEqual([])
    await runtime.stop()
  })

  test('says so if the side has no prompt of its own', () => {
    const named = defineAgent({ name: 'x', sideA: { prompt: 'by_name' } })
    expect(() => withModel(named, model)).toThrow(
      'The sideA of the agent "x" names the prompt "by_name".',
    )
  })
})

describe('asSubagent of an agent that is registered too', () => {
  const describing = { name: 'librarian', description: 'Knows where every book is.' }
  const librarian = defineAgent({
    ...describing,
    instructions: 'Look books up.',
    model: scripted(() => says('Shelf 7.')),
  })
  const desk = defineAgent({
    name: 'desk',
    instructions: 'Ask the librarian.',
    model: scripted(({ messages }) =>
      messages.at(-1)?.type === 'tool_result'
        ? says('It is on shelf 7.')
        : calls('librarian', { message: 'Moby Dick?' }),
    ),
    tools: [asSubagent(librarian)],
  })
  const porter = defineAgent({
    name: 'porter',
    instructions: 'Ask too, or hand over.',
    model,
    tools: [asSubagent(librarian)],
  })

  test.each([[[desk, librarian]], [[librarian, desk]], [[asSubagent(librarian), librarian, desk]]])(
    'both work, whatever the order',
    async (agents) => {
      const runtime = await createRuntime({ agents: [...agents, porter] })
      const names = catalog(runtime.registry).map(({ name, type }) => `${name} ${type}`)
      expect(names).toEqual([
        'desk ai_human',
        'librarian ai_human',
        'librarian_subagent dual_ai',
        'porter ai_human',
      ])
      await runtime.start()
      const { id } = await runtime.threads.create({ agent: desk })
      expect((await runtime.threads.run(id, 'Moby Dick?')).text).toBe('It is on shelf 7.')
      const [child] = await runtime.threads.children(id, { includesEnded: true })
      expect(child).toMatchObject({ name: 'librarian_subagent' })
      await runtime.stop()
    },
  )

  test('alone it keeps the name, and no internal name shows anywhere', () => {
    const registry = createRegistry({ agents: [desk] })
    expect([...registry.agents.keys()]).toEqual(['desk', 'librarian'])
    const { a, b } = registry.agent('librarian')
    expect(b!.label).toBe('caller')
    expect([a, b!].flatMap(({ prompt }) => prompt.models.map(({ name }) => name))).toEqual([
      'script',
    ])
    expect(JSON.stringify(catalog(registry))).not.toMatch(/nobody|skein/)
  })

  test('without a description it is named as it was written, with the field that its caller needs', () => {
    const silent = defineAgent({ name: 'librarian', instructions: 'Find books.', model })
    const asking = defineAgent({
      name: 'desk',
      instructions: 'Ask.',
      model,
      tools: [asSubagent(silent)],
    })
    for (const agents of [[asking], [asking, silent]])
      expect(() => createRegistry({ agents })).toThrow(
        /- agent "librarian": description: is required, because asSubagent makes a tool of the agent; models read it to decide when to ask\. Or: asSubagent\(agent, \{ toolDescription \}\)$/,
      )
  })

  test('another agent of that name is still a problem', () => {
    const other = defineAgent({ name: 'librarian', instructions: 'Other.', model })
    const twins = asSubagent(librarian, { toolDescription: 'Other words.' })
    expect(() => createRegistry({ agents: [desk, other] })).toThrow(
      /two different agents are called "librarian".*asSubagent\(agent, \{ name \}\)/,
    )
    expect(() => createRegistry({ agents: [desk, twins] })).toThrow('two different agents')
  })
})
