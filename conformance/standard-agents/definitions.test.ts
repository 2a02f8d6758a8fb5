import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { says, scripted } from '@skein/ai/testing'
import * as definitions from '@skein/runtime'
import {
  catalog,
  createRegistry,
  defineAgent,
  DefinitionError,
  defineHook,
  definePrompt,
  defineTool,
  type AgentDefinition,
  type Problem,
  type RegistryOptions,
} from '@skein/runtime'

const model = scripted([says('x')])
const note = defineTool({
  name: 'note',
  description: 'Takes a note.',
  args: z.object({ text: z.string() }),
  risk: 'write_low_risk',
  execute: (_state, { text }) => text,
})
const plain = definePrompt({ name: 'plain', prompt: 'Be brief.', model, tools: [note] })
const single = defineAgent({ name: 'single', sideA: { prompt: plain } })
const pair = defineAgent({
  name: 'pair',
  type: 'dual_ai',
  maxSessionTurns: 8,
  exposeAsTool: true,
  toolDescription: 'Two who work it out.',
  sideA: { prompt: plain },
  sideB: { prompt: plain },
})

/** As users without TypeScript write: anything may be given. */
function problemsOf(options: unknown): readonly Problem[] {
  try {
    createRegistry(options as RegistryOptions)
    return []
  } catch (error) {
    if (error instanceof DefinitionError) return error.problems
    throw error
  }
}

/** Problems of one agent, changed from one that is right. */
const withAgent = (base: AgentDefinition, change: object): readonly Problem[] =>
  problemsOf({ agents: [{ ...base, ...change }] })

const problem = (subject: string, field: string, message: string | RegExp) =>
  expect.objectContaining({ subject, field, message: expect.stringMatching(message) })

/** A parent whose prompt lists these tools. */
const parentOf = (...tools: readonly unknown[]) => ({
  name: 'parent',
  sideA: { prompt: { ...plain, name: 'listing', tools } },
})

test('what these tests start from is right', () => {
  expect(problemsOf({ agents: [single, pair, parentOf(note, pair)] })).toEqual([])
})

test('SA-01 one function defines agents, and the same agent is a root and a child', () => {
  const makers = Object.keys(definitions).filter((name) => name.startsWith('define'))
  expect(makers.filter((name) => /agent/i.test(name))).toEqual(['defineAgent'])
  const registry = createRegistry({ agents: [parentOf(pair) as AgentDefinition, pair] })
  expect(registry.agent('pair').definition).toBe(pair)
  expect(registry.agent('parent').a.prompt.tools).toMatchObject([
    { kind: 'subagent', name: 'pair', relation: { agent: 'pair' } },
  ])
})

describe('SA-02 an agent has a unique name', () => {
  test.each([undefined, '', '  ', 7, null])('SA-02 %j is no name', (name) => {
    expect(withAgent(single, { name })).toContainEqual(
      expect.objectContaining({ subject: expect.stringContaining('agent'), field: 'name' }),
    )
  })

  test('SA-02 two agents of one name are refused, the same agent twice is not', () => {
    const other = defineAgent({ ...single })
    expect(problemsOf({ agents: [single, other] })).toEqual([
      problem('agent "single"', 'name', 'two different agents are called "single"'),
    ])
    expect(problemsOf({ agents: [single, single] })).toEqual([])
  })

  test('SA-02 so are two of one name of which one is only listed by a prompt', () => {
    expect(problemsOf({ agents: [pair, parentOf({ ...pair })] })).toEqual([
      problem('agent "pair"', 'name', 'two different agents are called "pair"'),
    ])
    const twice = [parentOf({ ...pair }), { ...parentOf({ ...pair }), name: 'other' }]
    expect(problemsOf({ agents: twice }).map(({ field }) => field)).toContain('name')
  })

  test('SA-02 names that differ in case or blanks are different names', () => {
    const names = ['desk', 'Desk', 'front desk', '@acme/desk']
    const registry = createRegistry({ agents: names.map((name) => ({ ...single, name })) })
    expect(names.map((name) => registry.agent(name).name)).toEqual(names)
    expect(catalog(registry).map(({ name }) => name)).toEqual(names.toSorted())
  })
})

test('SA-03 side A is no person, whatever the type', () => {
  for (const base of [single, pair, { ...single, type: 'ai_human' as const }])
    expect(withAgent(base, { sideA: { human: true } })).toEqual([
      problem(`agent "${base.name}"`, 'sideA', 'the person is side B'),
    ])
})

test.each([undefined, null, 'plain', 7, []])('SA-03 a side A of %j is refused', (sideA) => {
  expect(withAgent(single, { sideA })).toContainEqual(
    problem('agent "single"', 'sideA', /is required|must be an object/),
  )
})

test('SA-04 the type is ai_human unless it is dual_ai, and nothing else', () => {
  const registry = createRegistry({ agents: [single, pair] })
  expect(registry.agent('single').type).toBe('ai_human')
  expect(registry.agent('pair').type).toBe('dual_ai')
  for (const type of ['bogus', 'DUAL_AI', '', null, 1]) {
    expect(withAgent(single, { type })).toEqual([
      problem('agent "single"', 'type', /one of "ai_human", "dual_ai"/),
    ])
  }
})

test('SA-05 dual_ai needs a side B', () => {
  expect(withAgent(pair, { sideB: undefined })).toEqual([
    problem('agent "pair"', 'sideB', 'is required'),
  ])
  expect(createRegistry({ agents: [pair] }).agent('pair').b).toMatchObject({ side: 'b' })
})

test('SA-05 exposed or not, capped or not, side B of dual_ai is neither missing nor a person', () => {
  for (const exposeAsTool of [true, false])
    for (const maxSessionTurns of [8, undefined]) {
      const base = { ...pair, exposeAsTool, maxSessionTurns }
      expect(withAgent(base, { sideB: undefined })).toEqual([
        problem('agent "pair"', 'sideB', 'is required'),
      ])
      expect(withAgent(base, { sideB: { human: true } })).toEqual([
        problem('agent "pair"', 'type', 'side B is a person'),
      ])
    }
})

test.each([0, -1, 1.5, Infinity, NaN, '3', null])(
  'SA-06 SA-24 a limit of %j is refused',
  (limit) => {
    expect(withAgent(pair, { maxSessionTurns: limit })).toEqual([
      problem('agent "pair"', 'maxSessionTurns', /above zero|number/),
    ])
    const sides = { sideA: { prompt: plain, maxSteps: limit }, sideB: { prompt: plain } }
    expect(withAgent(pair, sides)).toEqual([
      problem('agent "pair"', 'sideA.maxSteps', /above zero|number/),
    ])
  },
)

test.each([[{ KEY: 7 }], [{ KEY: null }], [['x']], ['x']])(
  'SA-11 variables of an agent are texts; %j is refused',
  (env) => {
    expect(withAgent(single, { env })).toHaveLength(1)
  },
)

test.each([
  ['stopOnResponse', 'no'],
  ['stopTool', 'notes'],
  ['stopToolResponseProperty', ''],
  ['label', 7],
])('SA-20 SA-21 SA-22 a side with %s %j is refused, on either side', (field, value) => {
  for (const side of ['sideA', 'sideB'])
    expect(withAgent(pair, { [side]: { prompt: plain, [field]: value } })).toEqual([
      problem('agent "pair"', `${side}.${field}`, /./),
    ])
})

test('SA-07 SA-08 title, description and icon are in the catalog, and only where given', () => {
  const shown = { title: 'Help desk', description: 'Answers.', icon: '/desk.svg' }
  const registry = createRegistry({ agents: [{ ...single, ...shown }, pair] })
  const [first, second] = catalog(registry)
  expect(first).toMatchObject({ name: 'pair', type: 'dual_ai' })
  expect(second).toMatchObject({ name: 'single', ...shown })
  for (const field of Object.keys(shown)) {
    expect(first).not.toHaveProperty(field)
    expect(withAgent(single, { [field]: 5 })).toEqual([
      problem('agent "single"', field, 'must be a string'),
    ])
  }
  expect(JSON.parse(JSON.stringify(catalog(registry)))).toEqual(catalog(registry))
})

describe('SA-09 an agent is a tool only if it says so', () => {
  test.each([undefined, false])('SA-09 exposeAsTool: %j', (exposeAsTool) => {
    const hidden = { ...pair, exposeAsTool }
    const message = 'not for use as a tool'
    expect(problemsOf({ agents: [parentOf(hidden)] })).toEqual([
      problem('prompt "listing"', 'tools[0]', message),
    ])
    expect(problemsOf({ agents: [parentOf({ name: hidden })] })).toEqual([
      problem('prompt "listing"', 'tools[0].name', message),
    ])
    const named = { agents: [parentOf('pair'), hidden] }
    expect(problemsOf(named)).toEqual([problem('prompt "listing"', 'tools[0]', 'exposeAsTool')])
  })

  test.each([undefined, false])('SA-09 nor is the thread handed to it: %j', (exposeAsTool) => {
    const hidden = { ...single, name: 'desk', toolDescription: 'Asks.', exposeAsTool }
    const message = 'not for use as a tool'
    for (const listed of [hidden, 'desk'])
      expect(problemsOf({ agents: [parentOf(listed), hidden] })).toEqual([
        problem('prompt "listing"', 'tools[0]', message),
      ])
  })

  test('SA-09 an exposed agent says what it is for', () => {
    expect(withAgent(pair, { toolDescription: undefined })).toEqual([
      problem('agent "pair"', 'toolDescription', 'is required'),
    ])
  })
})

describe('SA-12 hooks are found by id', () => {
  const quiet = defineHook({ id: 'quiet', hook: 'after_system_message', execute: () => null })
  const loud = defineHook({ id: 'loud', hook: 'tool_call_started', execute: () => undefined })

  test('SA-12 an unknown id is refused, on an agent and on a prompt', () => {
    expect(problemsOf({ agents: [{ ...single, hooks: ['quiett'] }], hooks: [quiet] })).toEqual([
      problem('agent "single"', 'hooks[0]', 'there is no hook "quiett"; did you mean "quiet"?'),
    ])
    expect(problemsOf({ agents: [{ ...pair, hooks: ['quiet', 'gone'] }], hooks: [quiet] })).toEqual(
      [problem('agent "pair"', 'hooks[1]', 'there is no hook "gone"')],
    )
    const prompt = { ...plain, hooks: ['quiet', 'gone'] }
    expect(problemsOf({ agents: [{ ...single, sideA: { prompt } }], hooks: [quiet] })).toEqual([
      problem('prompt "plain"', 'hooks[1]', 'there is no hook "gone"'),
    ])
  })

  test('SA-12 a list of the prompt, even an empty one, comes before the agent’s', () => {
    const hooksWith = (own: object) => {
      const prompt = definePrompt({ name: 'own', prompt: '', model, ...own })
      const agent = defineAgent({ name: 'a', sideA: { prompt }, hooks: ['quiet'] })
      const registry = createRegistry({ agents: [agent], hooks: [quiet, loud] })
      return registry.agent('a').a.hooks.map(({ id }) => id)
    }
    expect(hooksWith({})).toEqual(['quiet'])
    expect(hooksWith({ hooks: [] })).toEqual([])
    expect(hooksWith({ hooks: [loud] })).toEqual(['loud'])
    expect(hooksWith({ hooks: ['loud', quiet] })).toEqual(['loud', 'quiet'])
  })
})

test('SA-13 fields for packing are accepted and change nothing', () => {
  const packing = { packageName: '@acme/desk', version: '1.2.3', author: 'Ann', license: 'MIT' }
  const { definition: packed, ...rest } = createRegistry({
    agents: [{ ...single, ...packing }],
  }).agent('single')
  const { definition: bare, ...same } = createRegistry({ agents: [single] }).agent('single')
  expect(packed).toMatchObject(packing)
  expect(bare).not.toHaveProperty('version')
  expect(Object.keys(rest)).toEqual(Object.keys(same))
  expect({ ...rest, a: { ...rest.a, config: 0 } }).toEqual({ ...same, a: { ...same.a, config: 0 } })
  expect(withAgent(single, { version: 2 })).toEqual([
    problem('agent "single"', 'version', 'must be a string'),
  ])
})

test('SA-14 ai_human loads without a side B, and refuses one', () => {
  const registry = createRegistry({ agents: [single] })
  expect(registry.agent('single')).toMatchObject({ b: undefined, maxSessionTurns: Infinity })
  expect(registry.warnings).toEqual([])
  expect(withAgent(single, { sideB: { prompt: plain } })).toEqual([
    problem('agent "single"', 'sideB', 'is a person'),
  ])
})

test('SA-17 dual_ai without maxSessionTurns is warned of and capped', () => {
  const { maxSessionTurns: _left, ...open } = pair
  const registry = createRegistry({ agents: [open] })
  expect(registry.warnings).toEqual([problem('agent "pair"', 'maxSessionTurns', 'should be set')])
  expect(registry.agent('pair').maxSessionTurns).toBe(250)
  expect(createRegistry({ agents: [pair] }).warnings).toEqual([])
  expect(createRegistry({ agents: [pair] }).agent('pair').maxSessionTurns).toBe(8)
  expect(problemsOf({ agents: [open], strict: true })).toHaveLength(1)
  // Every such agent is warned of, whether it is for use as a tool or not.
  const names = ['one', 'two', 'three']
  const several = names.map((name, index) => ({ ...open, name, exposeAsTool: index !== 1 }))
  expect(createRegistry({ agents: several }).warnings.map(({ subject }) => subject)).toEqual(
    names.map((name) => `agent "${name}"`),
  )
})

describe('SA-19 every side has a prompt that exists', () => {
  test('SA-19 a missing prompt is refused on either side', () => {
    expect(withAgent(pair, { sideA: {}, sideB: { label: 'B' } })).toEqual([
      problem('agent "pair"', 'sideA.prompt', 'is required'),
      problem('agent "pair"', 'sideB.prompt', 'is required'),
    ])
  })

  test('SA-19 fields without a value are missing: a prompt is required, and other sides take its place', () => {
    // What a circular import leaves.
    const none = { prompt: undefined, agent: undefined, human: undefined, handler: undefined }
    for (const side of ['sideA', 'sideB'])
      expect(withAgent(pair, { [side]: none })).toEqual([
        problem('agent "pair"', `${side}.prompt`, 'is required'),
      ])
    expect(withAgent(pair, { sideB: { ...none, prompt: plain } })).toEqual([])
    const person = { name: 'person', type: 'ai_human', sideA: { ...none, prompt: plain } }
    expect(problemsOf({ agents: [person], prompts: [plain] })).toEqual([])
  })

  test('SA-19 an unknown prompt is refused, with the nearest name', () => {
    const agents = [{ ...single, sideA: { prompt: 'plian' } }]
    expect(problemsOf({ agents, prompts: [plain] })).toEqual([
      problem(
        'agent "single"',
        'sideA.prompt',
        'there is no prompt "plian"; did you mean "plain"?',
      ),
    ])
  })

  test('SA-19 an unknown prompt is refused on either side, also where no prompt is defined', () => {
    for (const side of ['sideA', 'sideB'])
      expect(withAgent(pair, { [side]: { prompt: 'gone' } })).toEqual([
        problem('agent "pair"', `${side}.prompt`, 'there is no prompt "gone"'),
      ])
    const alone = { name: 'alone', sideA: { prompt: 'gone' } }
    expect(problemsOf({ agents: [alone] })).toEqual([
      problem('agent "alone"', 'sideA.prompt', 'there is no prompt "gone"'),
    ])
  })

  test('SA-19 a prompt is found by name and by object', () => {
    const byName = defineAgent({ name: 'n', sideA: { prompt: 'plain' } })
    const registry = createRegistry({ agents: [byName, single], prompts: [plain] })
    expect(registry.agent('n').a.prompt).toBe(registry.agent('single').a.prompt)
    expect(registry.agent('n').a.prompt.definition).toBe(plain)
  })
})

describe('SA-28 bindings have two forms', () => {
  const bound = (sessionStop: unknown) =>
    createRegistry({
      agents: [{ ...single, sideA: { prompt: plain, sessionStop } } as AgentDefinition],
    }).agent('single').a.sessionStop

  test('SA-28 both forms, by name and by object, mean the same', () => {
    const expected = { name: 'note', messageProperty: undefined, attachmentsProperty: undefined }
    for (const form of ['note', note, { name: 'note' }, { name: note }]) {
      expect(bound(form)).toEqual(expected)
    }
    const mapped = { name: 'note', messageProperty: 'text', attachmentsProperty: 'files' }
    expect(bound(mapped)).toEqual(mapped)
  })

  test('SA-28 a name may have blanks in it', () => {
    const spaced = defineTool({ name: 'take a note', description: '', risk: 'read_only' })
    const prompt = { ...plain, tools: [spaced] }
    for (const form of ['take a note', spaced, { name: 'take a note' }]) {
      const side = { prompt, stopTool: spaced.name, sessionFail: form, sessionStatus: form }
      const { a } = createRegistry({
        agents: [{ ...single, sideA: side } as AgentDefinition],
      }).agent('single')
      expect([a.stopTool, a.sessionFail?.name, a.sessionStatus?.name]).toEqual(
        [1, 2, 3].map(() => 'take a note'),
      )
    }
  })

  test('SA-28 each binding of each side keeps its own fields', () => {
    const kinds = ['sessionStop', 'sessionFail', 'sessionStatus'] as const
    const side = (mark: string) =>
      Object.fromEntries(
        kinds.map((kind) => [
          kind,
          {
            name: 'note',
            messageProperty: `${mark} ${kind} text`,
            attachmentsProperty: `${mark} ${kind} files`,
          },
        ]),
      )
    const { a, b } = createRegistry({
      agents: [
        { ...pair, sideA: { prompt: plain, ...side('a') }, sideB: { prompt: plain, ...side('b') } },
      ],
    }).agent('pair')
    expect(a).toMatchObject(side('a'))
    expect(b).toMatchObject(side('b'))
  })

  test('SA-22 SA-28 a tool that the side cannot call is refused, though another prompt lists it', () => {
    const other = defineTool({ name: 'other', description: '', risk: 'read_only' })
    const busy = defineAgent({
      name: 'busy',
      sideA: { prompt: { ...plain, name: 'busy', tools: [other] } },
    })
    for (const field of ['stopTool', 'sessionStop', 'sessionFail', 'sessionStatus'])
      for (const given of ['other', other]) {
        const agent = { ...single, sideA: { prompt: plain, [field]: given } }
        expect(problemsOf({ agents: [agent, busy], tools: [other] })).toEqual([
          problem('agent "single"', `sideA.${field}`, '"other" is not among the tools'),
        ])
      }
  })

  test.each(['sessionStop', 'sessionFail', 'sessionStatus'])('SA-28 %s is checked', (field) => {
    const side = (binding: unknown) =>
      withAgent(single, { sideA: { prompt: plain, [field]: binding } })
    const message = /"notes" is not among the tools of the prompt "plain"; did you mean "note"/
    expect(side('notes')).toEqual([problem('agent "single"', `sideA.${field}`, message)])
    expect(side({ name: 'notes' })).toEqual([
      problem('agent "single"', `sideA.${field}.name`, message),
    ])
    expect(side({ name: 'note', message: 'text' })).toEqual([
      problem('agent "single"', `sideA.${field}.message`, 'not a known field'),
    ])
    expect(side({ messageProperty: 'text' })).toEqual([
      problem('agent "single"', `sideA.${field}.name`, 'is required'),
    ])
  })
})

describe('SA-37 a subagent is always dual_ai', () => {
  const desk = defineAgent({
    ...single,
    name: 'desk',
    exposeAsTool: true,
    toolDescription: 'Asks.',
  })

  test('SA-37 ai_human in a configuration is refused, by name and by object', () => {
    for (const listed of [{ name: desk }, { name: 'desk', blocking: false }]) {
      expect(problemsOf({ agents: [parentOf(listed), desk] })).toEqual([
        problem('prompt "listing"', 'tools[0].name', 'a subagent must be dual_ai'),
      ])
    }
  })

  test('SA-37 so it is however it is configured, with its type written or not', () => {
    for (const agent of [desk, defineAgent({ ...desk, type: 'ai_human' })])
      for (const config of [{}, { resumable: {} }, { resumable: false }, { immediate: true }])
        expect(problemsOf({ agents: [parentOf({ name: agent, ...config })] })).toEqual([
          problem('prompt "listing"', 'tools[0].name', 'a subagent must be dual_ai'),
        ])
  })

  test('SA-37 and among the subagents that a side lists itself', () => {
    const configs = [
      {},
      { blocking: false },
      { resumable: {} },
      { resumable: { maxInstances: 1 }, blocking: false },
      { immediate: true },
      { immediate: true, hidden: true },
      { as: 'other', optional: 'ON' },
    ]
    const forms = configs.flatMap((config) => [desk, 'desk'].map((agent) => ({ agent, ...config })))
    for (const listed of [desk, 'desk', ...forms])
      for (const side of ['sideA', 'sideB']) {
        const parent = { ...pair, [side]: { prompt: plain, subagents: [listed] } }
        expect(problemsOf({ agents: [parent, desk] })).toEqual([
          problem('agent "pair"', `${side}.subagents[0]`, 'a subagent must have two sides'),
        ])
      }
  })

  test('SA-37 ai_human listed plainly is a handoff instead', () => {
    const registry = createRegistry({ agents: [parentOf(desk) as AgentDefinition] })
    expect(registry.agent('parent').a.prompt.tools).toEqual([
      { kind: 'handoff', name: 'desk', agent: 'desk', description: 'Asks.' },
    ])
  })
})

test('SA-35 SA-37 a dual_ai agent hands off from neither side', () => {
  const desk = { ...single, name: 'desk', exposeAsTool: true, toolDescription: 'Asks.' }
  const prompt = { ...plain, name: 'listing', tools: [desk] }
  for (const side of ['sideA', 'sideB'])
    expect(withAgent(pair, { [side]: { prompt } })).toEqual([
      problem('agent "pair"', `${side}.prompt`, 'cannot hand off'),
    ])
})

test('SA-38 the list of tools of a prompt names agents, plainly or configured', () => {
  const listings = [pair, 'pair', { name: pair }, { name: 'pair', blocking: true }]
  const relations = listings.map((listed) => {
    const registry = createRegistry({ agents: [parentOf(listed) as AgentDefinition, pair] })
    return registry.agent('parent').a.prompt.tools
  })
  for (const tools of relations) expect(tools).toEqual(relations[0])
  expect(relations[0]).toMatchObject([
    { kind: 'subagent', relation: { isBlocking: true, isResumable: false, isImmediate: false } },
  ])
  expect(problemsOf({ agents: [parentOf('pear'), pair] })).toEqual([
    problem(
      'prompt "listing"',
      'tools[0]',
      'there is no tool or agent "pear"; did you mean "pair"',
    ),
  ])
})

test('SA-38 a name in the list that is unknown, or means two things, is refused in every form', () => {
  const namesake = defineTool({ name: 'pair', description: '', risk: 'read_only' })
  for (const [form, field] of [
    [(name: string) => name, 'tools[0]'],
    [(name: string) => ({ name }), 'tools[0].name'],
    [(name: string) => ({ name, blocking: false }), 'tools[0].name'],
  ] as const) {
    expect(problemsOf({ agents: [parentOf(form('nobody'))] })).toEqual([
      problem('prompt "listing"', field, 'there is no tool or agent "nobody"'),
    ])
    expect(problemsOf({ agents: [parentOf(form('pair')), pair], tools: [namesake] })).toEqual([
      problem('prompt "listing"', field, 'is the name of a tool and of an agent'),
    ])
  }
})

test('SA-18 SA-41 a child is disposable and awaited unless its configuration says otherwise', () => {
  const modes = [
    [{}, { isBlocking: true, isResumable: false }],
    [{ resumable: false }, { isBlocking: true, isResumable: false }],
    [{ blocking: false }, { isBlocking: false, isResumable: false }],
    [{ resumable: {} }, { isBlocking: true, isResumable: true }],
    [
      { resumable: {}, blocking: false },
      { isBlocking: false, isResumable: true },
    ],
  ] as const
  for (const [config, expected] of modes)
    for (const name of [pair, 'pair']) {
      const registry = createRegistry({
        agents: [parentOf({ name, ...config }) as AgentDefinition, pair],
      })
      expect(registry.agent('parent').a.prompt.tools).toMatchObject([
        { kind: 'subagent', name: 'pair', relation: { agent: 'pair', ...expected } },
      ])
    }
})

test('SA-44 either spelling says which side of the child is messaged', () => {
  for (const [resumable, receives] of [
    [{}, 'a'],
    [{ receives_messages: 'side_a' }, 'a'],
    [{ receives_messages: 'side_b' }, 'b'],
    [{ receivesMessages: 'side_b' }, 'b'],
    [{ receivesMessages: 'side_b', receives_messages: 'side_b' }, 'b'],
  ] as const) {
    const registry = createRegistry({
      agents: [parentOf({ name: pair, resumable }) as AgentDefinition],
    })
    expect(registry.agent('parent').a.prompt.tools).toMatchObject([{ relation: { receives } }])
  }
})

describe('SA-46 a subagent is configured field by field', () => {
  test('SA-46 every field is taken', () => {
    const config = {
      name: pair,
      blocking: false,
      initUserMessageProperty: 'task',
      initAttachmentsProperty: 'files',
      initAgentNameProperty: 'label',
      immediate: { nameEnv: 'N', descriptionEnv: 'D', scopedEnv: ['S'] },
      optional: 'WITH_PAIR',
      resumable: { receives_messages: 'side_b', maxInstances: 3, parentCommunication: 'explicit' },
    }
    const registry = createRegistry({ agents: [parentOf(config) as AgentDefinition] })
    expect(registry.agent('parent').a.prompt.tools).toMatchObject([
      {
        kind: 'subagent',
        relation: {
          key: 'pair',
          description: 'Two who work it out.',
          isBlocking: false,
          isResumable: true,
          receives: 'b',
          maxInstances: 3,
          communication: 'explicit',
          isImmediate: true,
          nameEnv: 'N',
          descriptionEnv: 'D',
          scopedEnv: ['S'],
          optional: 'WITH_PAIR',
          config: { initUserMessageProperty: 'task', initAgentNameProperty: 'label' },
        },
      },
    ])
  })

  test.each([
    [{ blokking: true }, 'tools[0].blokking', 'did you mean "blocking"'],
    [{ immediate: { env: 'X' } }, 'tools[0].immediate.env', 'not a known field'],
    [{ resumable: { max: 1 } }, 'tools[0].resumable.max', 'not a known field'],
    [{ env: {} }, 'tools[0].env', 'not a known field'],
    [{ resumable: true }, 'tools[0].resumable', 'takes the defaults'],
    [{ resumable: { maxInstances: 0 } }, 'tools[0].resumable.maxInstances', 'above zero'],
    [{ blocking: 'yes' }, 'tools[0].blocking', 'true or false'],
  ])('SA-46 %j is refused', (change, field, message) => {
    expect(problemsOf({ agents: [parentOf({ name: pair, ...change })] })).toEqual([
      problem('prompt "listing"', field, message),
    ])
  })
})

describe('SA-53 agents that create each other at the same time', () => {
  const ring = (...names: readonly string[]) =>
    names.map((name, index) => ({
      ...pair,
      name,
      sideA: {
        prompt: {
          ...plain,
          name: `${name}_prompt`,
          tools: [{ name: names[(index + 1) % names.length], immediate: true }],
        },
      },
    }))

  test.each([[['a']], [['a', 'b']], [['a', 'b', 'c']]])(
    'SA-53 the circle %j is refused',
    (names) => {
      expect(problemsOf({ agents: ring(...names) })).toEqual([
        problem('prompt "a_prompt"', 'tools[0].immediate', [...names, 'a'].join(' → ')),
      ])
    },
  )

  test('SA-53 a circle with one step that is not immediate is fine', () => {
    const [a, b] = ring('a', 'b')
    const lazy = { ...b?.sideA.prompt, tools: ['a'] }
    expect(problemsOf({ agents: [a, { ...b, sideA: { prompt: lazy } }] })).toEqual([])
  })

  test('SA-53 a circle through side B is one too', () => {
    const [a, b] = ring('a', 'b')
    const swapped = { ...b, sideA: { prompt: plain }, sideB: b?.sideA }
    expect(problemsOf({ agents: [a, swapped] })).toHaveLength(1)
  })
})
