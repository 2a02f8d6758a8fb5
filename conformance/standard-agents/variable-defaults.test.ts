// Defaults of agents and prompts count as values when a child requires variables (Standard Agents §1.2, §7.8).
import { describe, expect, test } from 'vitest'
import { calls, says } from '@skein/ai/testing'
import type { AgentDefinition, PromptDefinition, SubagentToolConfig } from '@skein/runtime'
import { pair, solo, tool } from './support/agents.ts'
import { simulate, type Simulation } from './support/simulate.ts'

const finish = tool('finish')
const key = { name: 'KEY', required: true, scoped: true }
const needs = { variables: [key] }
const env = { KEY: 'default' }

type Prompt = Pick<PromptDefinition, 'variables' | 'env'>

/** What an agent of a case sets and requires, and the child that its side A creates. */
interface Setup {
  readonly env?: Readonly<Record<string, string>>
  readonly a?: Prompt
  readonly b?: Prompt
  readonly below?: Setup
}

/** A child whose sides, one after the other, note what they read: `helper/a default`, or `-` for nothing. */
function reader(seen: string[], setup: Setup, name = 'helper'): AgentDefinition {
  const look = (side: string) =>
    tool(`${name}_${side}_looks`, (state) => {
      seen.push(`${name}/${side} ${state.hasEnv('KEY') ? state.env('KEY') : '-'}`)
    })
  const { a = {}, b = {}, below, ...agent } = setup
  const under = below && reader(seen, below, 'leaf')
  return pair(
    name,
    {
      a: {
        script: [
          calls(`${name}_a_looks`),
          ...(under ? [calls('leaf', { message: 'go' })] : []),
          says('Yours.'),
        ],
        tools: under ? [look('a'), under] : [look('a')],
        prompt: a,
      },
      b: {
        script: [calls(`${name}_b_looks`), calls('finish', { summary: `${name} is done` })],
        tools: [look('b'), finish],
        sessionStop: { name: finish, messageProperty: 'summary' },
        prompt: b,
      },
    },
    agent,
  )
}

const forms: Readonly<Record<string, Omit<SubagentToolConfig, 'name'>>> = {
  direct: {},
  resumable: { resumable: {} },
  immediate: { immediate: true },
}

/** Lets a parent create the child in one of the forms. */
async function created(
  helper: AgentDefinition,
  form: string,
  values: Readonly<Record<string, string>> = {},
): Promise<{ readonly it: Simulation; readonly id: string }> {
  const call = {
    direct: [calls('helper', { message: 'go' })],
    resumable: [calls('subagent_create', { agent: 'helper', name: 'Ada', message: 'go' })],
  }[form]
  const top = solo('boss', {
    script: [...(call ?? []), says('So.'), says('Good.')],
    tools: [{ name: helper, ...forms[form] }],
  })
  const it = await simulate({ agents: [top] })
  const id = await it.create({ env: values })
  await it.run(id, 'hi')
  await it.idle()
  return { it, id }
}

const missingIn = async (it: Simulation, id: string) =>
  (await it.events(id, 'variables_requested')).map(({ missing }) => missing)

describe.each(Object.keys(forms))('a %s child', (form) => {
  test.each<readonly [has: string, setup: Setup, seen: readonly string[]]>([
    ['its agent', { env, a: needs, b: needs }, ['helper/a default', 'helper/b default']],
    ['the prompt that requires it', { a: { ...needs, env } }, ['helper/a default', 'helper/b -']],
    [
      'each prompt that requires it',
      { a: { ...needs, env: { KEY: 'of A' } }, b: { ...needs, env: { KEY: 'of B' } } },
      ['helper/a of A', 'helper/b of B'],
    ],
    ['its agent, though it is empty', { env: { KEY: '' }, a: needs }, ['helper/a ', 'helper/b ']],
    [
      'the agent above the one that requires it',
      { env, below: { b: needs } },
      ['helper/a default', 'leaf/a default', 'leaf/b default', 'helper/b default'],
    ],
    [
      'the prompt that creates the one that requires it',
      { a: { env }, below: { a: needs } },
      ['helper/a default', 'leaf/a default', 'leaf/b default', 'helper/b -'],
    ],
    [
      'the agent below that requires it',
      { below: { env, a: needs } },
      ['helper/a -', 'leaf/a default', 'leaf/b default', 'helper/b -'],
    ],
  ])('SA-11 SA-61 is created without a value if %s has one', async (_, setup, expected) => {
    const seen: string[] = []
    const { it, id } = await created(reader(seen, setup), form)
    expect(await missingIn(it, id)).toEqual([])
    expect(seen).toEqual(expected)
  })

  test.each<readonly [has: string, setup: Setup]>([
    ['the other prompt', { a: needs, b: { env } }],
    ['one prompt of two that require it', { a: { ...needs, env }, b: needs }],
    ['the prompt next to the one that creates', { b: { env }, below: { a: needs } }],
    ['the agent below, and the one above requires it', { a: needs, below: { env, a: needs } }],
    ['nobody', { below: { b: needs } }],
  ])('SA-11 SA-61 is not created if only %s has a value', async (_, setup) => {
    const seen: string[] = []
    const { it, id } = await created(reader(seen, setup), form)
    expect(await missingIn(it, id)).toEqual([['KEY']])
    expect(seen).toEqual([])
  })

  test('SA-11 SA-61 gets the value of its parent before its own default', async () => {
    const seen: string[] = []
    const helper = reader(seen, { env, a: needs, b: { env: { KEY: 'of B' } } })
    const { it, id } = await created(helper, form, { KEY: 'of the parent' })
    expect(await missingIn(it, id)).toEqual([])
    expect(seen).toEqual(['helper/a of the parent', 'helper/b of the parent'])
  })

  test('SA-61 SA-62 is asked for what has no default; what has one may be given as well', async () => {
    const answers: Record<string, string>[] = [{}, { KEY: 'given' }]
    for (const given of answers) {
      const seen: string[] = []
      const other = { name: 'OTHER', required: true, scoped: true }
      const helper = reader(seen, { env, a: { variables: [key, other] } })
      const { it, id } = await created(helper, form)
      const [request] = await it.events(id, 'variables_requested')
      expect(request).toMatchObject({ required: ['KEY', 'OTHER'], missing: ['OTHER'] })
      await it.threads.variables.provide(id, request!.requestId, { OTHER: 'x', ...given })
      await it.idle()
      const value = given['KEY'] ?? 'default'
      expect(seen).toEqual([`helper/a ${value}`, `helper/b ${value}`])
    }
  })
})
