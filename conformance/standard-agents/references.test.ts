// Names by which definitions refer to each other are found exactly as they are written.
import { describe, expect, test } from 'vitest'
import type { JsonValue } from '@skein/base'
import { calls, says, scripted } from '@skein/ai/testing'
import { createRegistry, DefinitionError, type Problem, type RegistryOptions } from '@skein/runtime'
import { linesOf, pair, requestsOf, solo, tool } from './support/agents.ts'
import { simulate } from './support/simulate.ts'

const model = { kind: 'model', name: 'small', model: scripted([says('x')]) }
const note = {
  kind: 'tool',
  name: 'note',
  description: 'x',
  parameters: { type: 'object' },
  governance: { risk: 'read_only' },
  run: () => 'x',
}
const hook = { kind: 'hook', id: 'mark', hook: 'after_thread_created', execute: () => {} }
const plain = { kind: 'prompt', name: 'plain', prompt: 'x', model: 'small', tools: ['note'] }
const side = { prompt: 'plain' }
const helper = {
  name: 'helper',
  type: 'dual_ai',
  maxSessionTurns: 2,
  exposeAsTool: true,
  toolDescription: 'x',
  sideA: side,
  sideB: side,
}

/** As users without TypeScript write: a prompt and an agent of the test's own, and all that they may name. */
function problemsOf(prompt: object, agent: object): readonly Problem[] {
  const own = { ...plain, name: 'own', ...prompt }
  const options = {
    agents: [{ name: 'one', sideA: { prompt: own }, ...agent }, helper],
    prompts: [plain],
    tools: [note],
    hooks: [hook],
    models: [model],
  }
  try {
    createRegistry(options as unknown as RegistryOptions)
    return []
  } catch (error) {
    if (error instanceof DefinitionError) return error.problems
    throw error
  }
}

/** Where a name may be, and what it is the name of. */
const references: readonly [
  field: string,
  right: string,
  put: (name: string) => readonly [prompt: object, agent: object],
][] = [
  ['sideA.prompt', 'plain', (prompt) => [{}, { sideA: { prompt } }]],
  ['sideB.prompt', 'plain', (prompt) => [{}, { ...helper, name: 'one', sideB: { prompt } }]],
  ['prompt[0].prompt', 'plain', (prompt) => [{ prompt: [{ type: 'include', prompt }] }, {}]],
  ['model', 'small', (name) => [{ model: name }, {}]],
  ['tools[0]', 'note', (name) => [{ tools: [name] }, {}]],
  ['tools[0].name', 'note', (name) => [{ tools: [{ name, env: {} }] }, {}]],
  ['tools[0]', 'helper', (name) => [{ tools: [name] }, {}]],
  ['tools[0].name', 'helper', (name) => [{ tools: [{ name, blocking: false }] }, {}]],
  ['sideA.subagents[0].agent', 'helper', (name) => [{}, { sideA: { ...side, subagents: [name] } }]],
  ['hooks[0]', 'mark', (name) => [{}, { hooks: [name] }]],
  ['hooks[0]', 'mark', (name) => [{ hooks: [name] }, {}]],
  ['sideA.stopTool', 'note', (stopTool) => [{}, { sideA: { ...side, stopTool } }]],
  ['sideA.sessionStop', 'note', (name) => [{}, { sideA: { ...side, sessionStop: name } }]],
  ['sideA.sessionFail.name', 'note', (name) => [{}, { sideA: { ...side, sessionFail: { name } } }]],
  ['sideA.sessionStatus', 'note', (name) => [{}, { sideA: { ...side, sessionStatus: name } }]],
]

describe.each(references)('SA-19 SA-38 the name in %s (%s)', (field, right, put) => {
  test('SA-19 is found', () => {
    expect(problemsOf(...put(right))).toEqual([])
  })

  test.each([
    right.toUpperCase(),
    `${right[0]!.toUpperCase()}${right.slice(1)}`,
    ` ${right}`,
    `${right} `,
    right.slice(0, -1),
    `${right}s`,
    '__proto__',
  ])('SA-19 SA-38 is not found as %j', (name) => {
    const problems = problemsOf(...put(name))
    expect(problems.map((one) => one.field)).toContain(field)
    expect(problems.find((one) => one.field === field)!.message).toContain(`"${name}"`)
  })
})

test('SA-02 a thread is created only for the exact name of an agent', async () => {
  const it = await simulate({ agents: [solo('desk', { script: () => says('x') })] })
  for (const agent of ['Desk', 'DESK', ' desk', 'desk ', 'des', '', '__proto__', 'constructor'])
    await expect(it.create({ agent })).rejects.toMatchObject({ code: 'AGENT_NOT_FOUND' })
  expect(await it.threads.list()).toEqual([])
})

describe('SA-38 a name in the list of tools that several definitions have', () => {
  const namesake = { ...plain, name: 'helper', toolDescription: 'Asks a prompt.', tools: [] }
  const kindsOf = (listed: unknown, others: object): readonly string[] => {
    const own = { ...plain, name: 'own', tools: [listed] }
    const options = {
      agents: [{ name: 'one', sideA: { prompt: own } }, helper],
      prompts: [plain],
      tools: [note],
      models: [model],
      ...others,
    }
    const registry = createRegistry(options as unknown as RegistryOptions)
    return registry.agent('one').a.prompt.tools.map(({ kind }) => kind)
  }

  test('SA-38 means the agent, not a prompt of the same name', () => {
    const prompts = [plain, namesake]
    for (const listed of ['helper', { name: 'helper' }, { name: 'helper', resumable: {} }])
      expect(kindsOf(listed, { prompts })).toEqual(['subagent'])
    // By object it is the prompt.
    expect(kindsOf(namesake, { prompts })).toEqual(['prompt'])
  })

  test('SA-38 means the tool, not a prompt of the same name', () => {
    const prompts = [plain, { ...namesake, name: 'note' }]
    expect(kindsOf('note', { prompts })).toEqual(['tool'])
    expect(kindsOf({ name: 'note' }, { prompts })).toEqual(['tool'])
  })

  test('SA-38 means the prompt, if no tool and no agent has it', () => {
    const prompts = [plain, { ...namesake, name: 'third' }]
    expect(kindsOf('third', { prompts })).toEqual(['prompt'])
  })
})

test('SA-38 SA-57 subagent_create makes only an agent that is listed, by its exact name', async () => {
  const finish = tool('finish')
  const pairOf = (name: string) =>
    pair(name, {
      a: { script: () => calls('finish'), tools: [finish], sessionStop: finish },
      b: { script: [] },
    })
  for (const listed of [['helper'], ['helper', 'second']]) {
    const names = ['other', 'Helper', 'helper ', '', null, 7, undefined]
    const create = (agent: JsonValue | undefined) =>
      calls('subagent_create', {
        ...(agent !== undefined && { agent }),
        name: 'Ada',
        message: 'go',
      })
    const boss = solo('boss', {
      script: [...names.map(create), says('So.')],
      tools: listed.map((name) => ({ name: pairOf(name), resumable: {} })),
    })
    const it = await simulate({ agents: [boss, pairOf('other')] })
    const { id } = await it.ask('hi')
    // Where only one is listed, its name may be left out.
    const made = (await it.events(id, 'subagent_created')).map(({ name }) => name)
    expect(made).toEqual(listed.length === 1 ? ['helper'] : [])
    const refused = linesOf(requestsOf(boss).at(-1)).filter((line) => line.includes(' ! '))
    expect(refused).toHaveLength(names.length - made.length)
  }
})
