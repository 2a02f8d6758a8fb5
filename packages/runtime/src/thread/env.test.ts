import { expect, test } from 'vitest'
import type { ResolvedAgent, ResolvedSide, ResolvedTool } from '../definitions/resolved.ts'
import type { ToolDefinition } from '../definitions/tool-definition.ts'
import type { VariableDefinition } from '../definitions/prompt-definition.ts'
import type { EnvEntry } from '../state/kernel-state.ts'
import type { Side } from '../contract/thread-state.ts'
import { aesVault, envContext } from '../secrets/vault.ts'
import {
  checkEnvName,
  createEnvReader,
  type EnvReader,
  type EnvReaderOptions,
  isEnabled,
} from './env.ts'

const vault = aesVault({ key: new Uint8Array(32) })
const threadId = 'thread-1'

test('values come from the strongest source that has one', () => {
  const sources: Partial<EnvReaderOptions>[] = [
    { toolEnv: { NAME: 'tool' } },
    { kernel: kernelWith({ NAME: text('thread') }) },
    { instanceEnv: { NAME: 'instance' } },
    { agent: agentWith({ env: { NAME: 'agent' }, prompt: { NAME: 'prompt' } }) },
    { agent: agentWith({ prompt: { NAME: 'prompt' } }) },
  ]
  const names = ['tool', 'thread', 'instance', 'agent', 'prompt']
  sources.forEach((_, from) => {
    const merged = Object.assign({}, ...sources.slice(from).toReversed()) as (typeof sources)[0]
    expect(reader(merged).get('NAME')).toBe(names[from])
  })
  expect(reader({}).get('NAME')).toBe(undefined)
})

test('an empty value is a value', () => {
  const env = reader({ kernel: kernelWith({ NAME: text('') }), instanceEnv: { NAME: 'instance' } })
  expect(env.get('NAME')).toBe('')
  expect(env.require('NAME')).toBe('')
})

test('the prompt of the side that asks gives the weakest values', () => {
  const agent = agentWith({ prompt: { NAME: 'a' }, promptB: { NAME: 'b' } })
  expect(reader({ agent, side: 'a' }).get('NAME')).toBe('a')
  expect(reader({ agent, side: 'b' }).get('NAME')).toBe('b')
})

test('names of built-in members have no value', () => {
  for (const name of ['constructor', 'toString', '__proto__']) {
    expect(reader({ instanceEnv: {}, toolEnv: {} }).get(name)).toBe(undefined)
  }
})

test('a missing variable is named', () => {
  expect(() => reader({}).require('TOKEN')).toThrow(
    expect.objectContaining({
      code: 'ENV_MISSING',
      message: expect.stringContaining('"TOKEN"') as string,
    }),
  )
})

test('a sealed entry opens, for its own name and thread only', () => {
  const entry = sealed('TOKEN', 'swordfish')
  expect(reader({ kernel: kernelWith({ TOKEN: entry }) }).get('TOKEN')).toBe('swordfish')
  const moved = reader({ kernel: kernelWith({ OTHER: entry }) })
  expect(() => moved.get('OTHER')).toThrow('cannot be opened')
  expect(moved.secrets()).toEqual([])
  const elsewhere = reader({ kernel: kernelWith({ TOKEN: entry }), threadId: 'thread-2' })
  expect(() => elsewhere.get('TOKEN')).toThrow('cannot be opened')
})

test('what its entry or a declaration calls secret is one, wherever the value comes from', () => {
  const variables: VariableDefinition[] = [{ name: 'DECLARED', type: 'secret' }]
  const tool = { kind: 'tool', name: 't', variables: [{ name: 'OF_TOOL', type: 'secret' }] }
  const agent = agentWith({
    env: { DECLARED: 'one-agent', PLAIN: 'plain' },
    prompt: { DECLARED: 'one-prompt' },
    variables,
    tools: [
      {
        kind: 'tool',
        name: 't',
        tool: tool as unknown as ToolDefinition, // only its variables are read
        config: { name: 't', env: { OF_TOOL: 'tool-setting', PLAIN: 'plain' } },
      },
    ],
  })
  const env = reader({
    agent,
    instanceEnv: { OF_TOOL: 'tool-instance' },
    kernel: kernelWith({ STORED: sealed('STORED', 'stored-secret'), PLAIN: text('plain') }),
  })
  expect(env.typeOf('DECLARED')).toBe('secret')
  expect(env.typeOf('OF_TOOL')).toBe('secret')
  expect(env.typeOf('STORED')).toBe('secret')
  expect(env.typeOf('PLAIN')).toBe('text')
  expect(env.typeOf('NONE')).toBe(undefined)
  expect(env.secrets().sort()).toEqual([
    'one-agent',
    'one-prompt',
    'stored-secret',
    'tool-instance',
    'tool-setting',
  ])
})

test('a secret of the other side is a secret here', () => {
  const agent = agentWith({ env: { KEY: 'hidden' }, variablesB: [{ name: 'KEY', type: 'secret' }] })
  expect(reader({ agent, side: 'a' }).secrets()).toEqual(['hidden'])
})

test('entries that are not committed cover those of the thread, and null removes', () => {
  const pending = new Map<string, EnvEntry | null>()
  const kernel = kernelWith({ A: text('a'), S: sealed('S', 'old-secret') })
  const env = reader({ kernel, instanceEnv: { A: 'instance' } }).over(pending)
  pending.set('A', text('new')).set('S', sealed('S', 'new-secret'))
  expect(env.get('A')).toBe('new')
  expect(env.get('S')).toBe('new-secret')
  expect(env.secrets().sort()).toEqual(['new-secret', 'old-secret'])
  pending.set('A', null)
  expect(env.get('A')).toBe('instance')
})

test.each([
  ['true', true],
  ['TRUE', true],
  ['true ', false],
  ['1', true],
  ['Yes', true],
  ['on', false],
  ['0', false],
  ['', false],
  [undefined, false],
])('%j switches on: %s', (value, expected) => {
  expect(isEnabled(value)).toBe(expected)
})

test('names of variables', () => {
  for (const name of ['A', '_a1', 'NAME__2']) expect(checkEnvName(name)).toBe(name)
  for (const name of ['', '1A', 'A-B', 'A B', 'Ä', 'A\n', 'a'.repeat(257)]) {
    expect(() => checkEnvName(name)).toThrow(expect.objectContaining({ code: 'ENV_INVALID' }))
  }
})

function reader(options: Partial<EnvReaderOptions>): EnvReader {
  return createEnvReader({
    kernel: kernelWith({}),
    agent: agentWith({}),
    side: 'a',
    instanceEnv: {},
    vault,
    threadId,
    ...options,
  })
}

function kernelWith(env: Record<string, EnvEntry>): EnvReaderOptions['kernel'] {
  return { env: new Map(Object.entries(env)) }
}

function text(value: string): EnvEntry {
  return { type: 'text', value, isScoped: false }
}

function sealed(name: string, secret: string): EnvEntry {
  const value = vault.seal(secret, envContext(threadId, name))
  return { type: 'secret', value, isScoped: false }
}

type Env = Readonly<Record<string, string>>

function agentWith(parts: {
  env?: Env
  prompt?: Env
  promptB?: Env
  variables?: VariableDefinition[]
  variablesB?: VariableDefinition[]
  tools?: ResolvedTool[]
}): ResolvedAgent {
  const { env, prompt, promptB, variables = [], variablesB = [], tools = [] } = parts
  return {
    definition: { name: 'agent', sideA: { prompt: 'p' }, ...(env && { env }) },
    name: 'agent',
    type: 'dual_ai',
    a: side('a', { env: prompt, variables, tools }),
    b: side('b', { env: promptB, variables: variablesB, tools: [] }),
    maxSessionTurns: 250,
    hash: '',
  }
}

function side(
  name: Side,
  prompt: { env: Env | undefined; variables: VariableDefinition[]; tools: ResolvedTool[] },
): ResolvedSide {
  const { env, variables, tools } = prompt
  const resolved = { definition: { ...(env && { env }) }, name: 'p', variables, tools }
  return { side: name, prompt: resolved } as unknown as ResolvedSide // all that is read of it
}
