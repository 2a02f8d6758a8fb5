// Hooks of both sides at the points that belong to no turn: a new thread, and children that no call creates.
import { describe, expect, test } from 'vitest'
import { agent as uapAgent } from '@skein/agents'
import { calls, says, scripted } from '@skein/ai/testing'
import {
  asSubagent,
  defineAgent,
  defineHook,
  type AgentDefinition,
  type HookDefinition,
} from '@skein/runtime'
import { child, finish, finished, pair, type SideSetup, solo } from './support/agents.ts'
import { simulate } from './support/simulate.ts'

describe('after_thread_created', () => {
  /** Hooks that note their id and the side whose variables they read. */
  function marks(seen: string[]): (...ids: readonly string[]) => HookDefinition[] {
    const made = new Map<string, HookDefinition>()
    return (...ids) =>
      ids.map((id) => {
        const hook =
          made.get(id) ??
          defineHook({
            id,
            hook: 'after_thread_created',
            execute: (state) => void seen.push(`${id} ${state.env('SIDE')}`),
          })
        made.set(id, hook)
        return hook
      })
  }

  type Ids = readonly string[] | undefined
  test.each<{ a: Ids; b: Ids; agent?: Ids; ran: readonly string[] }>([
    { a: ['one'], b: [], ran: ['one A'] },
    { a: [], b: ['one'], ran: ['one B'] },
    { a: ['one', 'two'], b: ['three', 'four'], ran: ['one A', 'two A', 'three B', 'four B'] },
    { a: ['one'], b: ['one'], ran: ['one A'] },
    { a: ['one', 'two'], b: ['two', 'three'], ran: ['one A', 'two A', 'three B'] },
    { a: undefined, b: undefined, agent: ['one', 'two'], ran: ['one A', 'two A'] },
    { a: ['own'], b: undefined, agent: ['one'], ran: ['own A', 'one B'] },
    { a: undefined, b: ['own'], agent: ['one'], ran: ['one A', 'own B'] },
    { a: [], b: undefined, agent: ['one'], ran: ['one B'] },
    { a: [], b: [], agent: ['one'], ran: [] },
  ])('SA-12 of side A, then of side B, each once: %j', async ({ a, b, agent = [], ran }) => {
    const seen: string[] = []
    const mark = marks(seen)
    const side = (name: string, ids: Ids) => ({
      script: () => finished('done'),
      tools: [finish],
      sessionStop: finish,
      prompt: { env: { SIDE: name }, ...(ids && { hooks: mark(...ids) }) },
    })
    const both = pair('both', { a: side('A', a), b: side('B', b) }, { hooks: mark(...agent) })
    const boss = solo('boss', {
      script: [calls('both', { message: 'go' }), says('So.')],
      tools: [both],
    })
    const it = await simulate({ agents: [boss, both] })
    const id = await it.create({ agent: 'both' })
    await it.idle()
    expect(seen).toEqual(ran)
    await it.run(id, 'go')
    await it.run(id, 'again')
    expect(seen).toEqual(ran)
    // As a child it is the same agent.
    seen.length = 0
    await it.ask('hi')
    expect(seen).toEqual(ran)
  })

  test('SA-12 of a side that is an agent() of its own, too', async () => {
    const seen: string[] = []
    const mark = marks(seen)
    const { sideA } = child('other', { prompt: { env: { SIDE: 'A' }, hooks: mark('of_a') } })
    const both = defineAgent({
      name: 'both',
      type: 'dual_ai',
      maxSessionTurns: 2,
      env: { SIDE: 'any' },
      hooks: mark('of_agent'),
      sideA,
      sideB: { agent: uapAgent({ model: scripted([]), system: 'You.' }) },
    })
    const it = await simulate({ agents: [both] })
    await it.create()
    await it.idle()
    expect(seen).toEqual(['of_a any', 'of_agent any'])
  })

  test('SA-01 SA-12 an agent made a subagent runs what it runs by itself', async () => {
    for (const own of [[], ['own'], undefined] as const) {
      const seen: string[] = []
      const mark = marks(seen)
      const plain = solo(
        'plain',
        { script: () => says('x'), prompt: own && { hooks: mark(...own) } },
        { env: { SIDE: 'A' }, hooks: mark('of_agent'), description: 'Plain.' },
      )
      const it = await simulate({ agents: [plain, asSubagent(plain, { name: 'made' })] })
      const runs: string[][] = []
      for (const agent of ['plain', 'made']) {
        seen.length = 0
        await it.run(await it.create({ agent }), 'go')
        runs.push([...seen])
      }
      const ran = own ? own.map((id) => `${id} A`) : ['of_agent A']
      expect(runs).toEqual([ran, ran])
    }
  })
})

describe('after_subagent_created', () => {
  const marks = (seen: string[], id: string) =>
    defineHook({
      id,
      hook: 'after_subagent_created',
      execute: (state, { name }) => void seen.push(`${id} ${state.env('SIDE')} ${name}`),
    })

  /** A pair; each side has a hook and children of its own that start by themselves. */
  function family(seen: string[], kids: { readonly a: AgentDefinition[]; b: AgentDefinition[] }) {
    const side = (name: 'a' | 'b'): SideSetup => ({
      script: () => finished('over'),
      tools: [finish, ...kids[name].map((kid) => ({ name: kid, immediate: true as const }))],
      sessionStop: finish,
      prompt: { env: { SIDE: name }, hooks: [marks(seen, `of_${name}`)] },
    })
    return pair('both', { a: side('a'), b: side('b') })
  }

  test('SA-12 SA-47 runs for an immediate child with the hooks of the side that lists it', async () => {
    const seen: string[] = []
    const both = family(seen, { a: [child('one'), child('two')], b: [child('three')] })
    const it = await simulate({ agents: [both] })
    await it.ask('hi')
    expect(seen).toEqual(['of_a a one', 'of_a a two', 'of_b b three'])
  })

  test('SA-12 SA-64 and for a child whose variables came later', async () => {
    const seen: string[] = []
    const late = (name: string) =>
      child(name, { prompt: { variables: [{ name: 'KEY', required: true, scoped: true }] } })
    const it = await simulate({ agents: [family(seen, { a: [late('one')], b: [late('two')] })] })
    const { id } = await it.ask('hi')
    expect(seen).toEqual([])
    for (const { requestId } of await it.events(id, 'variables_requested'))
      await it.threads.variables.provide(id, requestId, { KEY: 'x' })
    await it.idle()
    expect(seen.toSorted()).toEqual(['of_a a one', 'of_b b two'])
  })
})
