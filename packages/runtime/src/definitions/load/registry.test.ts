import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { says, scripted } from '@skein/ai/testing'
import { catalog } from './catalog.ts'
import { createRegistry, type RegistryOptions } from './registry.ts'
import { defineAgent } from '../define-agent.ts'
import { defineEffect } from '../define-effect.ts'
import { defineEndpoint, defineHook, defineModel, definePrompt } from '../define.ts'
import { DefinitionError, type Problem } from '../definition-error.ts'
import { defineTool } from '../define-tool.ts'
import type { AgentDefinition } from '../agent-definition.ts'
import type { PromptDefinition, VariableDefinition } from '../prompt-definition.ts'

const model = scripted([says('x')])
const read = defineTool({ name: 'read', description: 'Reads.', risk: 'read_only' })
const write = defineTool({ name: 'write', description: 'Writes.', risk: 'write_low_risk' })
const prompt = definePrompt({ name: 'main', prompt: 'Hi.', model, tools: [read, write] })
const agent = defineAgent({ name: 'one', sideA: { prompt } })
const exposed = { exposeAsTool: true, toolDescription: 'Helps.' } as const
const desk = defineAgent({ ...agent, name: 'desk', ...exposed })
const pairing = definePrompt({ name: 'pairing', prompt: 'Hi.', model, tools: [read, write] })
const pair = defineAgent({
  name: 'pair',
  type: 'dual_ai',
  maxSessionTurns: 4,
  sideA: { prompt: pairing },
  sideB: { prompt: pairing },
  ...exposed,
})

function problemsOf(options: unknown): readonly Problem[] {
  try {
    createRegistry(options as RegistryOptions)
    return []
  } catch (error) {
    if (error instanceof DefinitionError) return error.problems
    throw error
  }
}

const withPrompt = (change: object, more: object = {}) =>
  problemsOf({ agents: [{ ...agent, sideA: { prompt: { ...prompt, ...change } } }], ...more })
const withSide = (change: object) =>
  problemsOf({ agents: [{ ...agent, sideA: { prompt, ...change } }] })
const withTool = (change: object) => withPrompt({ tools: [{ ...read, ...change }] })
const withModel = (change: object) =>
  withPrompt({ model: { ...defineModel({ name: 'm', model }), ...change } })

/** `subject | field | beginning of the message`, which is all that these tests compare. */
const lines = (problems: readonly Problem[]) =>
  problems.map(({ subject, field, message }) => `${subject} | ${field} | ${message}`)

function expectProblem(problems: readonly Problem[], expected: string): void {
  expect(lines(problems)).toEqual([expect.stringContaining(expected)])
}

test('everything that an agent reaches is registered with it', () => {
  const inner = defineTool({ name: 'inner', description: '', risk: 'read_only' })
  const outer = defineTool({ name: 'outer', description: '', risk: 'read_only', uses: [inner] })
  const hook = defineHook({ id: 'h', hook: 'filter_messages', execute: () => undefined })
  const child = defineAgent({
    ...pair,
    name: 'child',
    sideB: { prompt: definePrompt({ name: 'b', prompt: '', model, hooks: [hook] }) },
  })
  const root = defineAgent({
    name: 'root',
    sideA: {
      prompt: definePrompt({ name: 'r', prompt: '', model, tools: [outer, { name: child }] }),
    },
  })
  const registry = createRegistry({ agents: [root] })
  expect([...registry.agents.keys()]).toEqual(['root', 'child'])
  expect([...registry.tools.keys()].sort()).toEqual(['inner', 'outer', 'read', 'write'])
  expect(registry.hooks.get('h')).toBe(hook)
  expect(registry.tools.get('inner')).toBe(inner)
})

test('names and objects lead to the same registry', () => {
  const named = createRegistry({
    agents: [
      { ...agent, sideA: { prompt: 'main', stopTool: 'write' } },
      { ...pair, sideA: { prompt: 'main' }, sideB: { prompt: 'main' } },
    ],
    prompts: [{ ...prompt, model: 'm', tools: ['read', 'write'] }],
    tools: [read, write],
    models: [defineModel({ name: 'm', model })],
  })
  const { tools, models } = named.agent('one').a.prompt
  expect(tools.map((tool) => tool.kind === 'tool' && tool.tool)).toEqual([read, write])
  expect(models).toMatchObject([{ name: 'm', model }])
  expect(named.agent('one').a.stopTool).toBe('write')
})

test('an agent that is not there is an error that names those that are', () => {
  const registry = createRegistry({ agents: [agent, pair] })
  expect(() => registry.agent('pare')).toThrow(
    expect.objectContaining({
      code: 'AGENT_NOT_FOUND',
      message: expect.stringContaining('did you mean "pair"?'),
      hint: 'Agents: one, pair.',
    }),
  )
})

test('defaults are in place', () => {
  const { a } = createRegistry({ agents: [agent] }).agent('one')
  expect(a).toMatchObject({
    side: 'a',
    label: 'main',
    stopOnResponse: true,
    stopTool: undefined,
    maxSteps: Infinity,
    hooks: [],
    sessionStop: undefined,
  })
})

test('models and their fallbacks stand in the order in which they are asked', () => {
  const [one, two, three] = ['1', '2', '3'].map((modelId) => scripted([], { modelId }))
  const last = defineModel({ name: 'last', model: three!, fallbacks: ['first'] })
  const first = defineModel({ name: 'first', model: one!, fallbacks: [two!, last] })
  const registry = createRegistry({
    agents: [{ ...agent, sideA: { prompt: { ...prompt, model: first } } }],
  })
  const { models } = registry.agent('one').a.prompt
  expect(models.map(({ name }) => name)).toEqual(['first', '2', 'last'])
  expect(models.map(({ definition }) => definition)).toEqual([first, undefined, last])
})

test('includes are unfolded in place', () => {
  const inner = definePrompt({
    name: 'inner',
    prompt: [{ type: 'env', property: 'CITY' }],
    model,
    variables: [{ name: 'CITY', required: true }],
  })
  const outer = definePrompt({
    name: 'outer',
    model,
    prompt: [
      { type: 'text', content: 'a' },
      { type: 'include', prompt: inner },
      { type: 'include', prompt: 'tail' },
    ],
  })
  const tail = definePrompt({ name: 'tail', prompt: 'z', model })
  const registry = createRegistry({
    agents: [{ ...agent, sideA: { prompt: outer } }],
    prompts: [tail],
  })
  const { parts, variables } = registry.agent('one').a.prompt
  expect(parts).toEqual([
    { type: 'text', content: 'a' },
    { type: 'env', property: 'CITY' },
    { type: 'text', content: 'z' },
  ])
  expect(variables).toEqual([{ name: 'CITY', required: true }])
})

test('all problems come at once, line by line', () => {
  const broken = {
    agents: [
      { name: 'a', type: 'dual_ai', maxSessionTurns: -1, sideA: { prompt: 'main', maxSteps: 0.5 } },
      { sideA: { promt: 'x' } },
    ],
    prompts: [{ ...prompt, tools: ['reed', read] }],
    tools: [{ ...write, governance: {} }],
    extras: [],
  }
  const problems = problemsOf(broken)
  expect(lines(problems).map((line) => line.split(' | ').slice(0, 2).join(' | '))).toEqual([
    'registry | extras',
    'agent "a" | maxSessionTurns',
    'agent "a" | sideA.maxSteps',
    'agent in agents[1] | sideA.promt',
    'agent in agents[1] | sideA.prompt',
    'agent in agents[1] | name',
    'tool "write" | risk',
    'prompt "main" | tools[0]',
    'agent "a" | sideB',
  ])
  const error = new DefinitionError(problems)
  expect(error.code).toBe('DEFINITION_INVALID')
  expect(error.message.split('\n')).toHaveLength(problems.length + 1)
  expect(error.message).toContain(
    '- prompt "main": tools[0]: there is no tool or agent "reed"; did',
  )
})

describe('agents', () => {
  test.each([
    [{ stopTool: 'erase' }, 'agent "one" | sideA.stopTool | "erase" is not among the tools'],
    [{ maxSteps: 0 }, 'agent "one" | sideA.maxSteps | must be a whole number above zero, not 0'],
    [{ maxSteps: -1 }, 'agent "one" | sideA.maxSteps | must be a whole number'],
    [{ maxSteps: 1.5 }, 'agent "one" | sideA.maxSteps | must be a whole number'],
    [{ maxSteps: '3' }, 'agent "one" | sideA.maxSteps | must be a whole number'],
    [{ stopOnResponse: 1 }, 'agent "one" | sideA.stopOnResponse | must be true or false, not 1'],
    [{ sessionEnd: 'read' }, 'agent "one" | sideA.sessionEnd | is not a known field'],
    [
      { prompt: read },
      'agent "one" | sideA.prompt | must be a prompt’s name or made with definePrompt',
    ],
  ])('the side %j is refused', (change, expected) => expectProblem(withSide(change), expected))

  test.each([
    [{ maxSessionTurns: 0 }, 'agent "one" | maxSessionTurns | must be a whole number above zero'],
    [{ nmae: 'x' }, 'agent "one" | nmae | is not a known field; did you mean "name"?'],
    [{ env: { A: 1 } }, 'agent "one" | env.A | must be a string, not number'],
    [{ budget: { maxTokens: -1 } }, 'agent "one" | budget.maxTokens'],
    [{ name: 'subagent_create' }, 'agent "subagent_create" | name | "subagent_create" is reserved'],
    [
      { taskClass: { name: 't', verifiers: [], needs: [{ type: 'tool_result', source: 'reed' }] } },
      'taskClass.needs[0].source | "reed" is not among the tools of this agent; did you',
    ],
    [{ taskClass: { name: 't', needs: [] } }, 'agent "one" | taskClass.verifiers | is required'],
  ])('the agent %j is refused', (change, expected) => {
    expectProblem(problemsOf({ agents: [{ ...agent, ...change }] }), expected)
  })

  test('a bound tool may be given by object and must be one of the prompt', () => {
    const other = defineTool({ name: 'other', description: '', risk: 'read_only' })
    expect(withSide({ sessionStop: read, stopTool: write })).toEqual([])
    expectProblem(withSide({ sessionStop: other }), 'sideA.sessionStop | "other" is not among')
  })

  test('a resumable subagent is no tool that could be bound', () => {
    const listing = { ...prompt, tools: [{ name: pair, resumable: {} }] }
    expectProblem(withSide({ prompt: listing, stopTool: 'pair' }), 'sideA.stopTool | "pair" is not')
  })

  test('a dual_ai agent cannot hand off', () => {
    const listing = { ...prompt, name: 'listing', tools: [desk] }
    const agents = [{ ...pair, sideB: { prompt: listing } }]
    expectProblem(
      problemsOf({ agents }),
      'agent "pair" | sideB.prompt | a dual_ai agent cannot hand',
    )
    expect(problemsOf({ agents: [{ ...agent, sideA: { prompt: listing } }] })).toEqual([])
  })
})

describe('prompts', () => {
  const cases: readonly (readonly [object, string])[] = [
    [{ kind: undefined }, 'agent "one" | sideA.prompt | must be a prompt’s name'],
    [{ model: undefined }, 'prompt "main" | model | is required'],
    [{ model: 'gpt' }, 'prompt "main" | model | there is no model "gpt"'],
    [{ model: 7 }, 'prompt "main" | model | must be a model’s name'],
    [{ prompt: 7 }, 'prompt "main" | prompt | must be a string or a list of parts, not 7'],
    [{ prompt: [{ type: 'txt' }] }, 'prompt "main" | prompt[0].type | must be one of "text"'],
    [{ prompt: [{ type: 'text' }] }, 'prompt "main" | prompt[0].content | is required'],
    [{ prompt: [{ type: 'include', prompt: 'x' }] }, 'prompt[0].prompt | there is no prompt "x"'],
    [{ output: { type: 'object' } }, 'prompt "main" | output | must be a Standard Schema'],
    [{ requiredSchema: 7 }, 'prompt "main" | requiredSchema | must be a Standard Schema'],
    [{ output: z.object({ at: z.date() }) }, 'prompt "main" | output | '],
    [{ toolChoice: 'any' }, 'prompt "main" | toolChoice | must be one of'],
    [{ variables: [{ type: 'text' }] }, 'prompt "main" | variables[0].name | is required'],
    [{ variables: [{ name: 'A', secret: true }] }, 'variables[0].secret | is not a known field'],
    [{ reasoning: { effort: 'max' } }, 'prompt "main" | reasoning.effort'],
    [{ compaction: { keep: 1 } }, 'prompt "main" | compaction.keep | is not a known field'],
    [{ recentImageThreshold: -1 }, 'prompt "main" | recentImageThreshold'],
    [{ tols: [] }, 'prompt "main" | tols | is not a known field; did you mean "tools"?'],
  ]
  test.each(cases)('%j is refused', (change, expected) => {
    expectProblem(withPrompt(change), expected)
  })

  test('prompts that include each other are refused once', () => {
    const ring = ['a', 'b', 'c'].map((name, index, all) => ({
      ...prompt,
      name,
      prompt: [{ type: 'include', prompt: all[(index + 1) % 3] }],
    }))
    const agents = ['a', 'b'].map((name) => ({ ...agent, name, sideA: { prompt: name } }))
    expectProblem(
      problemsOf({ agents, prompts: ring }),
      'prompt "c" | prompt[0].prompt | prompts include each other: a → b → c → a',
    )
  })

  test('includes that double with every level are refused, not computed', () => {
    const prompts = Array.from({ length: 40 }, (_, level) => ({
      ...prompt,
      name: `p${level}`,
      prompt: level === 0 ? 'x' : [0, 1].map(() => ({ type: 'include', prompt: `p${level - 1}` })),
    }))
    const [first] = problemsOf({ agents: [], prompts })
    expect(first?.message).toContain('more than 10000 parts')
  })
})

describe('what a prompt lists', () => {
  const cases: readonly (readonly [readonly unknown[], string])[] = [
    [[read, 'read'], 'prompt "main" | tools[1] | two tools of this prompt are called "read"'],
    [[pair, { name: pair }], 'tools[1] | the agent "pair" is listed both plainly and with'],
    [[{ name: pair }, { name: 'pair' }], 'tools[1] | two tools of this prompt are called "pair"'],
    [[{ name: read, blocking: true }], 'tools[0].blocking | is not a known field'],
    [[{ name: read, env: { A: 1 } }], 'tools[0].env.A | must be a string'],
    [[{ env: {} }], 'tools[0].name | is required'],
    [[defineAgent({ name: 'x', ...exposed } as never)], 'agent "x" | sideA | is required'],
    [
      [{ kind: 'hook', id: 'h' }],
      'tools[0] | must be a tool, an agent, a name or { name, … }, not another definition',
    ],
    [[7], 'tools[0] | must be a tool, an agent, a name'],
    [[{ name: pair, resumable: { receives_messages: 'a' } }], 'receives_messages | must be one of'],
    [
      [{ name: pair, resumable: { receives_messages: 'side_a', receivesMessages: 'side_b' } }],
      'tools[0].resumable | receives_messages and receivesMessages say different things',
    ],
  ]
  test.each(cases)('%# is refused', (tools, expected) => {
    expectProblem(withPrompt({ tools }, { tools: [read] }), expected)
  })

  test('a name that a tool and an agent share is refused where it is used', () => {
    const agents = [
      { ...pair, name: 'read' },
      { ...agent, sideA: { prompt } },
    ]
    expect(problemsOf({ agents })).toEqual([])
    expectProblem(
      problemsOf({
        agents: [
          ...agents,
          { ...desk, sideA: { prompt: { ...prompt, name: 'p', tools: ['read'] } } },
        ],
      }),
      'prompt "p" | tools[0] | "read" is the name of a tool and of an agent',
    )
  })

  test.each([{ receives_messages: 'side_b' }, { receivesMessages: 'side_b' }])(
    'both spellings are taken: %j',
    (resumable) => {
      const listing = { ...prompt, tools: [{ name: pair, resumable }] } as PromptDefinition
      const registry = createRegistry({ agents: [{ ...agent, sideA: { prompt: listing } }] })
      expect(registry.agent('one').a.prompt.tools).toMatchObject([{ relation: { receives: 'b' } }])
    },
  )

  test('a tool keeps the settings that the prompt gives it', () => {
    const config = { name: read, env: { A: '1' }, options: { depth: 2 } }
    const registry = createRegistry({
      agents: [{ ...agent, sideA: { prompt: { ...prompt, tools: [config] } } }],
    })
    expect(registry.agent('one').a.prompt.tools).toEqual([
      { kind: 'tool', name: 'read', tool: read, config: { ...config, name: 'read' } },
    ])
  })
})

describe('tools, models, hooks, effects and endpoints', () => {
  test.each([
    [{ governance: undefined }, 'tool "read" | governance | is required'],
    [{ governance: {} }, 'tool "read" | risk | is required'],
    [{ governance: { risk: 'low' } }, 'tool "read" | risk | must be one of "read_only"'],
    [{ governance: { risk: 'read_only', raise: 1 } }, 'tool "read" | raise'],
    [{ governance: { risk: 'read_only', safe: 1 } }, 'tool "read" | safe'],
    [{ run: 'x' }, 'tool "read" | run | must be a function'],
    [{ uses: ['wrote'] }, 'tool "read" | uses[0] | there is no tool "wrote"'],
    [{ timeoutMs: 0 }, 'tool "read" | timeoutMs'],
    [{ parameters: undefined }, 'tool "read" | parameters | is required'],
    [{ approval: () => true }, 'tool "read" | approval | is not a known field'],
    [
      { name: 'subagent_message' },
      'tool "subagent_message" | name | "subagent_message" is reserved',
    ],
  ])('the tool %j is refused', (change, expected) => expectProblem(withTool(change), expected))

  test('what defineTool was given wrong is found when it is loaded', () => {
    const wrong = { name: 'w', description: '', risk: 'none', execute: 5, raise: 6, extra: 1 }
    const fields = withPrompt({ tools: [defineTool(wrong as never)] }).map(({ field }) => field)
    expect(fields.sort()).toEqual(['extra', 'raise', 'risk', 'run'])
  })

  test.each([
    [{ model: 'x' }, 'model "m" | model | must be a model such as'],
    [{ fallbacks: ['n'] }, 'model "m" | fallbacks[0] | there is no model "n"'],
    [{ inputPrice: -1 }, 'model "m" | inputPrice | must be a number that is not negative'],
    [{ capabilities: { maxTokens: 1 } }, 'model "m" | capabilities.maxTokens | is not a known'],
  ])('the model %j is refused', (change, expected) => expectProblem(withModel(change), expected))

  const hook = defineHook({ id: 'h', hook: 'filter_messages', execute: () => undefined })
  const effect = defineEffect({ name: 'e', execute: () => undefined })
  const endpoint = defineEndpoint({ path: 'a', method: 'GET', execute: () => new Response() })
  test.each([
    [{ hooks: [{ ...hook, hook: 'before_all' }] }, 'hook "h" | hook | must be one of'],
    [{ hooks: [{ ...hook, id: '' }] }, 'hook "" | id | must not be empty'],
    [{ hooks: [{ ...hook, when: 1 }] }, 'hook "h" | when | is not a known field'],
    [{ hooks: [hook, { ...hook }] }, 'hook "h" | id | two different hooks are called "h"'],
    [
      { effects: [{ ...effect, retry: { attempts: 0, backoffMs: 1 } }] },
      'effect "e" | retry.attempts',
    ],
    [{ effects: [{ ...effect, run: 1 }] }, 'effect "e" | run | must be a function'],
    [{ effects: [{ ...effect, cron: '* * * * *' }] }, 'effect "e" | cron | is not a known field'],
    [{ endpoints: [{ ...endpoint, method: 'HEAD' }] }, 'endpoint "HEAD a" | method'],
    [{ endpoints: [{ ...endpoint, path: '/a' }] }, 'endpoint "GET /a" | path | must not begin'],
    [
      { endpoints: [endpoint, { ...endpoint }] },
      'endpoint "GET a" | path | two different endpoints',
    ],
    [{ tools: [hook] }, 'tool in tools[0]'],
  ])('%# is refused', (more, expected) => {
    expect(lines(problemsOf({ agents: [agent], ...more })).join('\n')).toContain(expected)
  })

  test('they are in the registry', () => {
    const registry = createRegistry({
      agents: [agent],
      hooks: [hook],
      effects: [effect],
      endpoints: [endpoint],
    })
    expect(registry.hooks.get('h')).toBe(hook)
    expect(registry.effects.get('e')).toBe(effect)
    expect(registry.endpoints).toEqual([endpoint])
  })
})

describe('secrets', () => {
  const token = { name: 'TOKEN', type: 'secret' } as const
  const parts = { prompt: [{ type: 'env', property: 'TOKEN' }] }
  const secretive = { ...read, variables: [token] }
  const field = 'prompt[0].property | "TOKEN" is declared as a secret'

  test('a secret of the prompt or of its tools cannot be a part of it', () => {
    expectProblem(withPrompt({ ...parts, variables: [token] }), `prompt "main" | ${field}`)
    expectProblem(withPrompt({ ...parts, tools: [secretive] }), `prompt "main" | ${field}`)
    expect(withPrompt({ ...parts, variables: [{ name: 'TOKEN', type: 'text' }] })).toEqual([])
  })

  test('nor one of the other side, of a tool that a tool uses, or of a prompt that includes it', () => {
    const shown = { ...prompt, ...parts, name: 'shown' }
    const other = { ...prompt, name: 'other', variables: [token] }
    const agents = [{ ...pair, sideA: { prompt: shown }, sideB: { prompt: other } }]
    expectProblem(problemsOf({ agents }), `prompt "shown" | ${field}`)
    const user = { ...write, uses: [secretive] }
    expectProblem(withPrompt({ ...parts, tools: [user] }), `prompt "main" | ${field}`)
    const including = { prompt: [{ type: 'include', prompt: shown }], variables: [token] }
    expectProblem(withPrompt(including), `prompt "shown" | ${field}`)
  })

  test('values of variables are in no message', () => {
    const canary = 'sk-canary-1'
    const error = new DefinitionError(
      problemsOf({
        agents: [{ ...agent, env: { A: [canary] }, sideA: { prompt: { ...prompt, env: canary } } }],
      }),
    )
    expect(error.problems).toHaveLength(2)
    expect(error.message).not.toContain(canary)
  })
})

describe('variables that a child needs', () => {
  const needs = (name: string, more: object = {}): VariableDefinition => ({
    name,
    scoped: true,
    required: true,
    ...more,
  })

  test('are the scoped and required ones of its whole graph', () => {
    const tool = {
      ...read,
      name: 'scoped',
      variables: [needs('FROM_TOOL'), needs('OPTIONAL', { required: false })],
    }
    const grandchild = {
      ...pair,
      name: 'grandchild',
      sideB: { prompt: { ...prompt, name: 'g', variables: [needs('DEEP')] } },
    }
    const childPrompt = {
      ...prompt,
      name: 'c',
      tools: [tool, write, grandchild],
      variables: [needs('OWN', { type: 'secret' }), needs('WIDE', { scoped: false })],
    }
    const child = {
      ...pair,
      sideA: { prompt: childPrompt },
      sideB: { prompt: { ...prompt, name: 'cb', tools: [tool] } },
    }
    const root = {
      ...agent,
      sideA: { prompt: { ...prompt, name: 'r', tools: [child], variables: [needs('ROOT')] } },
    }
    const registry = createRegistry({
      agents: [
        { ...root, sideA: { prompt: { ...root.sideA.prompt, tools: [child] } } } as AgentDefinition,
      ],
    })
    const [listed] = registry.agent('one').a.prompt.tools
    expect(
      listed?.kind === 'subagent' && listed.relation.requiredVariables.map(({ name }) => name),
    ).toEqual(['OWN', 'FROM_TOOL', 'DEEP'])
  })

  test('are found in circles too', () => {
    const circle = {
      ...pair,
      sideA: { prompt: { ...prompt, name: 'c', tools: ['pair'], variables: [needs('A')] } },
    } as AgentDefinition
    const [listed] = createRegistry({ agents: [circle] }).agent('pair').a.prompt.tools
    expect(listed).toMatchObject({ relation: { requiredVariables: [{ name: 'A' }] } })
  })
})

test('the catalog names what a thread needs', () => {
  const child = {
    ...pair,
    sideB: {
      prompt: {
        ...prompt,
        name: 'c',
        variables: [{ name: 'WIDE' }, { name: 'OWN', scoped: true }],
      },
    },
  }
  const root = {
    ...agent,
    env: { CITY: 'Rome' },
    sideA: {
      label: 'Desk',
      prompt: {
        ...prompt,
        name: 'r',
        tools: [read, child],
        variables: [
          { name: 'KEY', type: 'secret', required: true },
          { name: 'CITY', description: 'Where.' },
        ],
      },
    },
  }
  const [one] = catalog(createRegistry({ agents: [root as AgentDefinition] }))
  const variable = { type: 'text', required: false, scoped: false, hasDefault: false }
  expect(one).toEqual({
    name: 'one',
    type: 'ai_human',
    sides: { a: 'Desk', b: null },
    tools: ['read', 'pair'],
    variables: [
      { ...variable, name: 'KEY', type: 'secret', required: true },
      { ...variable, name: 'CITY', description: 'Where.', hasDefault: true },
      { ...variable, name: 'WIDE' },
    ],
    exposeAsTool: false,
    maxSessionTurns: null,
  })
})

test.each([undefined, null, 7, [], {}, { agents: {} }, { agents: [null] }, { agents: ['one'] }])(
  'createRegistry(%j) says what it wants',
  (options) => expect(problemsOf(options)).toHaveLength(1),
)
