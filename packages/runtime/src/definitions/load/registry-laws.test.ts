import fc from 'fast-check'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { says, scripted } from '@skein/ai/testing'
import { createRegistry, type RegistryOptions } from './registry.ts'
import { DefinitionError } from '../definition-error.ts'
import { defineTool } from '../define-tool.ts'

const numRuns = Math.round(300 * (process.env['SKEIN_DEEP'] ? 20 : 1))
const model = scripted([says('x')])

type Loose = Record<string, any>

/** A set that uses every field, made anew for each run; what is not frozen may be changed. */
function everything(): Loose {
  const tool = (name: string): Loose => {
    const made: Loose = { ...defineTool({ name, description: name, risk: 'read_only' }) }
    return { ...made, governance: { ...made['governance'], idempotent: true }, timeoutMs: 100 }
  }
  const stop = { ...tool('stop'), variables: [{ name: 'S', scoped: true, required: true }] }
  const hook = { kind: 'hook', id: 'h', hook: 'filter_messages', execute: () => undefined }
  const big = { kind: 'model', name: 'big', model, fallbacks: ['small', model], inputPrice: 3 }
  const worker = {
    kind: 'prompt',
    name: 'worker',
    prompt: [
      { type: 'text', content: 'a' },
      { type: 'include', prompt: 'shared' },
      { type: 'env', property: 'CITY' },
    ],
    model: big,
    tools: ['read', stop, { name: 'write', env: { A: '1' }, options: { a: 1 } }],
    variables: [{ name: 'CITY', type: 'text', description: 'Where.' }],
    output: z.object({ a: z.string() }),
    hooks: [hook],
    reasoning: { effort: 'low' },
    compaction: { keepMessages: 3 },
  }
  const side = {
    prompt: worker,
    label: 'W',
    stopTool: 'read',
    maxSteps: 5,
    sessionStop: { name: stop, messageProperty: 'm' },
    sessionFail: 'write',
  }
  const pair = {
    name: 'pair',
    type: 'dual_ai',
    maxSessionTurns: 5,
    exposeAsTool: true,
    toolDescription: 'Pair.',
    sideA: side,
    sideB: { ...side },
    env: { CITY: 'Rome' },
    budget: { maxTokens: 5, tree: { maxCostUsd: 1 } },
  }
  const desk = {
    name: 'desk',
    exposeAsTool: true,
    toolDescription: 'Desk.',
    sideA: { prompt: 'shared' },
  }
  const main = {
    kind: 'prompt',
    name: 'main',
    prompt: 'Hi.',
    model: 'small',
    tools: [
      desk,
      { name: pair, blocking: false, optional: 'P', immediate: { nameEnv: 'N', scopedEnv: ['S'] } },
      { name: 'other', resumable: { maxInstances: 2, parentCommunication: 'explicit' } },
      { ...tool('uses'), uses: ['read'] },
    ],
  }
  return {
    agents: [
      { name: 'root', sideA: { prompt: main }, hooks: ['h'], title: 'Root' },
      { ...pair, name: 'other', sideA: { ...side } },
    ],
    prompts: [{ kind: 'prompt', name: 'shared', prompt: 'z', model }],
    tools: [tool('read'), tool('write')],
    models: [{ kind: 'model', name: 'small', model, capabilities: { maxContextTokens: 9 } }],
    effects: [
      { kind: 'effect', name: 'e', run: async () => 1, retry: { attempts: 1, backoffMs: 1 } },
    ],
    endpoints: [{ kind: 'endpoint', path: 'a/[id]', method: 'GET', execute: () => new Response() }],
    prices: () => ({ input: 1, output: 2 }),
  }
}

/** Every field of every definition, as the way to it. */
function pathsOf(value: unknown, path: readonly string[] = []): (readonly string[])[] {
  if (
    typeof value !== 'object' ||
    value === null ||
    Object.isFrozen(value) ||
    '~standard' in value
  ) {
    return []
  }
  return Object.entries(value).flatMap(([key, field]) => {
    const here = [...path, key]
    return [here, ...pathsOf(field, here)]
  })
}

const circular: Loose = { name: 'round' }
circular['self'] = circular
// prettier-ignore -- one value per line says no more
const junk = fc.constantFrom<unknown>(
  undefined,
  null,
  0,
  -1,
  1.5,
  NaN,
  Infinity,
  1n,
  Symbol('s'),
  true,
  false,
  '',
  ' ',
  'x',
  [],
  [null],
  [[]],
  {},
  { name: 7 },
  circular,
  Object.create(null),
  new Date(0),
  new Map(),
  'root',
  'pair',
  'main',
  'read',
  'stop',
  'subagent_create',
  'dual_ai',
  'ai_human',
  'include',
  () => 1,
  class A {},
  model,
  z.string(),
  { kind: 'prompt' },
  { kind: 'tool' },
  { sideA: {} },
  { '~standard': { validate: () => 1 } },
  { toString: null },
  new Proxy({}, {}),
)

const mutation = fc.record({
  at: fc.constantFrom(...pathsOf(everything())),
  change: fc.oneof(
    junk.map((value) => (owner: Loose, key: string) => void (owner[key] = value)),
    fc.constant((owner: Loose, key: string) => void delete owner[key]),
    junk.map((value) => (owner: Loose) => void (owner['unheardOf'] = value)),
  ),
})

function mutate(
  root: Loose,
  { at, change }: { at: readonly string[]; change: (o: Loose, k: string) => void },
) {
  let owner: Loose | undefined = root
  for (const key of at.slice(0, -1)) {
    const next: unknown = owner?.[key]
    owner = typeof next === 'object' && next !== null && !Object.isFrozen(next) ? next : undefined
  }
  if (owner) change(owner, at.at(-1) as string)
}

test('what the laws start from is right', () => {
  expect(createRegistry(everything() as RegistryOptions).warnings).toEqual([])
})

test('whatever is done to definitions, loading answers a registry or a list of problems', () => {
  fc.assert(
    fc.property(fc.array(mutation, { minLength: 1, maxLength: 6 }), (mutations) => {
      const root = everything()
      for (const each of mutations) mutate(root, each)
      try {
        createRegistry(root as RegistryOptions)
      } catch (error) {
        expect(error).toBeInstanceOf(DefinitionError)
        const { problems, message } = error as DefinitionError
        expect(problems.length).toBeGreaterThan(0)
        for (const { subject, field, message: line } of problems) {
          expect(subject).not.toBe('')
          expect([typeof field, typeof line]).toEqual(['string', 'string'])
          expect(message).toContain(line)
        }
      }
    }),
    { numRuns },
  )
})

/** Faults that do not touch each other. */
const faults: readonly ((root: Loose) => void)[] = [
  ({ agents }) => delete agents[0].name,
  ({ agents }) => (agents[0].hooks = ['gone']),
  ({ agents }) => (agents[0].titel = 'x'),
  ({ agents }) => delete agents[1].sideB,
  ({ agents }) => (agents[1].maxSessionTurns = 0),
  ({ agents }) => delete agents[1].toolDescription,
  ({ agents }) => (agents[1].sideA.maxSteps = -2),
  ({ agents }) => (agents[1].sideA.sessionFail = { name: 'gone' }),
  ({ agents }) => (agents[1].sideA.stopTool = 'gone'),
  ({ agents }) => (agents[0].sideA.prompt.model = 'gone'),
  ({ agents }) => (agents[0].sideA.prompt.tools[2].resumable.maxInstances = 1.5),
  ({ agents }) => (agents[0].sideA.prompt.tools[1].blokking = true),
  ({ agents }) => (agents[0].sideA.prompt.tools[3].uses = ['gone']),
  ({ agents }) => delete agents[0].sideA.prompt.tools[3].governance.risk,
  ({ agents }) => agents[0].sideA.prompt.tools.push('gone'),
  ({ agents }) => (agents[1].sideA.prompt.output = { type: 'object' }),
  ({ agents }) => (agents[1].sideA.prompt.hooks[0].hook = 'gone'),
  ({ agents }) => (agents[1].sideA.prompt.variables[0].type = 'secret'),
  ({ agents }) => (agents[1].sideA.prompt.model.fallbacks[0] = 'gone'),
  ({ agents }) => (agents[1].sideA.prompt.prompt[1].prompt = 'gone'),
  ({ prompts }) => (prompts[0].includeChat = 'no'),
  ({ tools }) => (tools[0].run = 7),
  ({ tools }) => tools.push({ ...tools[1] }),
  ({ models }) => (models[0].outputPrice = -1),
  ({ effects }) => delete effects[0].run,
  ({ endpoints }) => (endpoints[0].method = 'LOOK'),
  (root) => (root['agent'] = []),
]

test('as many problems are told as were made, at least', () => {
  fc.assert(
    fc.property(fc.subarray([...faults], { minLength: 1 }), (planted) => {
      const root = everything()
      for (const plant of planted) plant(root)
      let count = 0
      try {
        createRegistry(root as RegistryOptions)
      } catch (error) {
        if (!(error instanceof DefinitionError)) throw error
        count = error.problems.length
      }
      expect(count).toBeGreaterThanOrEqual(planted.length)
    }),
    { numRuns },
  )
})

test.each(faults.map((fault) => [fault] as const))('one fault is one problem: %s', (fault) => {
  const root = everything()
  fault(root)
  expect(() => createRegistry(root as RegistryOptions)).toThrow('There is 1 problem')
})
