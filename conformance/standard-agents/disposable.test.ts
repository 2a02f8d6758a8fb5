// A child that is not resumable ends with its result (Standard Agents §7.3).
import { expect, test } from 'vitest'
import { calls, says, scripted } from '@skein/ai/testing'
import {
  defineAgent,
  defineHook,
  definePrompt,
  memoryStore,
  RuntimeError,
  type AgentDefinition,
  type Commit,
  type HookDefinition,
  type PromptTool,
} from '@skein/runtime'
import { linesOf, pair, requestsOf, solo, tool, type SideSetup } from './support/agents.ts'
import { latch } from './support/latch.ts'
import { simulate, type Simulation } from './support/simulate.ts'

const finish = tool('finish')

/** A child whose side A ends the session with `finish`. */
function child(
  name: string,
  script: SideSetup['script'],
  tools: readonly PromptTool[] = [],
): AgentDefinition {
  const a = {
    script,
    tools: [finish, ...tools],
    sessionStop: { name: finish, messageProperty: 'text' },
  }
  return pair(name, { a, b: { script: () => says('Continue.') } })
}

const done = (text: string) => calls('finish', { text })

async function childOf(it: Simulation, id: string): Promise<string> {
  const [made] = await it.events(id, 'subagent_created')
  return made!.reference
}

const codeOf = (error: unknown): string =>
  error instanceof RuntimeError ? error.code : String(error)

test('a disposable child takes no message after its result, and its sender gets a typed error', async () => {
  for (const blocking of [true, false]) {
    const helper = child('helper', () => done('found'))
    const boss = solo('boss', {
      script: [calls('helper', { message: 'go' }), says('Thanks.'), says('Noted.')],
      tools: [{ name: helper, blocking }],
    })
    const it = await simulate({ agents: [boss] })
    const { id } = await it.ask('please')
    await it.idle()
    const reference = await childOf(it, id)
    expect((await it.threads.get(reference)).lifecycle).toBe('terminated')
    expect(await it.events(reference, 'thread_terminated')).toMatchObject([{ hasReported: true }])
    expect(await it.events(id, 'subagent_ended')).toMatchObject([{ outcome: 'completed' }])
    expect(await it.threads.send(reference, 'more').catch(codeOf)).toBe('THREAD_TERMINATED')
    expect(await it.threads.resume(reference).catch(codeOf)).toBe('THREAD_TERMINATED')
    await it.idle()
    expect(requestsOf(helper)).toHaveLength(1)
    const heard = linesOf(requestsOf(boss).at(-1)).filter((line) => line.includes('found'))
    expect(heard).toHaveLength(1)
  }
})

test.each([
  ['says that it failed', () => calls('give_up'), 'failed'],
  ['reached its cap', () => says('Hm.'), 'failed'],
] as const)('SA-59 a disposable child that %s is over as well', async (_, script, outcome) => {
  const giveUp = tool('give_up', (state) => state.stopSession({ failed: true, result: 'fog' }))
  const helper = { ...child('helper', script, [giveUp]), maxSessionTurns: 2 }
  const boss = solo('boss', {
    script: [calls('helper', { message: 'go' }), says('Oh.')],
    tools: [helper],
  })
  const it = await simulate({ agents: [boss] })
  const { id, text } = await it.ask('please')
  await it.idle()
  expect(text).toBe('Oh.')
  const reference = await childOf(it, id)
  expect((await it.threads.get(reference)).lifecycle).toBe('terminated')
  expect(await it.events(reference, 'thread_terminated')).toMatchObject([{ hasReported: true }])
  expect(await it.events(id, 'subagent_ended')).toMatchObject([{ outcome }])
  expect(await it.threads.send(reference, 'more').catch(codeOf)).toBe('THREAD_TERMINATED')
})

test('SA-86 a parent that is terminated has a child behind it that ended before', async () => {
  const helper = child('helper', () => done('found'))
  const boss = solo('boss', {
    script: [calls('helper', { message: 'go' }), says('Thanks.')],
    tools: [helper],
  })
  const it = await simulate({ agents: [boss] })
  const { id } = await it.ask('please')
  await it.threads.terminate(id)
  await it.idle()
  expect((await it.threads.get(id)).lifecycle).toBe('terminated')
  expect(await it.events(id, 'error_raised')).toEqual([])
  expect((await it.events(id, 'subagent_ended')).map(({ outcome }) => outcome)).toEqual([
    'completed',
    'terminated',
  ])
})

test('children that a disposable child left behind are terminated; the parent receives one report', async () => {
  const goOn = latch()
  const grandchild = child('grandchild', async () => {
    await goOn.reached
    return done('too late')
  })
  const helper = child(
    'helper',
    [calls('grandchild', { message: 'work' }), done('I am done')],
    [{ name: grandchild, blocking: false }],
  )
  const boss = solo('boss', {
    script: [calls('helper', { message: 'go' }), says('Thanks.'), says('Again?')],
    tools: [helper],
  })
  const it = await simulate({ agents: [boss] })
  const { id } = await it.ask('please')
  const reference = await childOf(it, id)
  const below = await childOf(it, reference)
  goOn.open()
  await it.idle()
  expect((await it.threads.get(below)).lifecycle).toBe('terminated')
  expect(requestsOf(boss)).toHaveLength(2)
  expect(linesOf(requestsOf(boss)[1]).at(-1)).toBe('tool_result: helper = "I am done"')
  expect(await it.events(reference, 'session_end')).toHaveLength(1)
  expect(await it.events(id, 'subagent_ended')).toHaveLength(1)
})

test('a report that comes when the child is over stays readable as undelivered', async () => {
  const helper = child(
    'helper',
    [calls('leaf', { message: 'work' }), done('I am done')],
    [{ name: child('leaf', () => done('leaf result')), blocking: false }],
  )
  const boss = solo('boss', {
    script: [calls('helper', { message: 'go' }), says('Thanks.')],
    tools: [helper],
  })
  const store = memoryStore()
  const { commit } = store
  // The leaf's report is held until the helper has ended, and its termination until the report is there.
  const ended = latch()
  const reported = latch()
  store.commit = async (wanted: Commit) => {
    const isLeaf = (await store.head(wanted.threads[0]!.id))?.agent === 'leaf'
    if (wanted.point.split('+').includes('session_end') && isLeaf) await ended.reached
    if (wanted.point === 'cascade') await reported.reached
    const result = await commit.call(store, wanted)
    if (wanted.point.split('+').includes('session_end')) (isLeaf ? reported : ended).open()
    return result
  }
  const it = await simulate({ agents: [boss], store })
  const { id } = await it.ask('please')
  await it.idle()
  const leaf = await childOf(it, await childOf(it, id))
  expect(await it.events(leaf, 'session_end')).toMatchObject([
    { outcome: 'completed', message: 'leaf result', isUndelivered: true },
  ])
})

test('a resumable child lives on', async () => {
  const helper = child('helper', () => done('found'))
  const boss = solo('boss', {
    script: [calls('subagent_create', { name: 'h', message: 'go' }), says('Thanks.'), says('Ok.')],
    tools: [{ name: helper, resumable: {} }],
  })
  const it = await simulate({ agents: [boss] })
  const { id } = await it.ask('please')
  const reference = await childOf(it, id)
  expect((await it.threads.get(reference)).lifecycle).toBe('idle')
  expect(await it.run(reference, 'more')).toMatchObject({ outcome: 'completed' })
})

test.each(['erase', 'remove', 'terminate'] as const)(
  'a parent that is gone (%s) when the child reports is no crash: the result is kept as undelivered',
  async (how) => {
    let it!: Simulation
    let parentId = ''
    const helper = child('helper', () => done('found'))
    const boss = solo('boss', {
      script: [calls('subagent_create', { name: 'h', message: 'go' }), says('Thanks.')],
      tools: [{ name: helper, blocking: false, resumable: {} }],
    })
    const store = memoryStore()
    const { commit } = store
    let isGone = false
    store.commit = async (wanted: Commit) => {
      const [own, ...others] = wanted.threads
      const isReport =
        wanted.point.split('+').includes('session_end') && others.some((one) => one.id === parentId)
      if (isReport && !isGone && own?.id !== parentId) {
        isGone = true // between the look at the parent's head and the commit
        const head = how === 'terminate' ? 'terminated' : 'erased'
        if (how === 'remove') await store.remove(parentId)
        else
          await commit.call(store, {
            point: 'test',
            threads: [{ id: parentId, head: { lifecycle: head } }],
          })
      }
      return commit.call(store, wanted)
    }
    it = await simulate({ agents: [boss], store })
    parentId = await it.create({ agent: 'boss' })
    await it.send(parentId, 'please').catch(() => undefined)
    await it.runtime.idle()
    expect(it.errors).toEqual([])
    const heads = await store.list({ sort: 'oldest', limit: 10 })
    const below = heads.find(({ agent }) => agent === 'helper')!
    expect(below.lifecycle).toBe('idle')
    const log = (await store.events(below.id)).map(({ event }) => event)
    expect(log.findLast(({ type }) => type === 'session_end')).toMatchObject({
      outcome: 'completed',
      isUndelivered: true,
    })
  },
)

test('a blocking child that starts by itself and is stopped before it began lets its parent continue', async () => {
  const goOn = latch()
  const early = defineAgent({
    ...child('early', () => done('ready')),
    hooks: ['waits'],
  } as AgentDefinition)
  const hook = defineHook({
    id: 'waits',
    hook: 'after_thread_created',
    execute: () => goOn.reached,
  }) as HookDefinition
  const prompt = definePrompt({
    name: 'boss_a',
    prompt: '',
    model: scripted([says('Hello.')]),
    tools: [{ name: early, immediate: true }],
  })
  const boss = defineAgent({ name: 'boss', sideA: { prompt } })
  const it = await simulate({ agents: [boss], hooks: [hook] })
  const id = await it.create({ message: 'hi' })
  for (;;) {
    if ((await it.events(id, 'subagent_created')).length > 0) break
    await new Promise((resolve) => setImmediate(resolve))
  }
  await it.threads.stop(await childOf(it, id))
  goOn.open()
  await it.idle()
  expect(await it.threads.settled(id)).toMatchObject({ outcome: 'completed', text: 'Hello.' })
})

test('a call that was answered because its child was stuck is not answered again after a resume', async () => {
  const helper = child('helper', () => done('found after all'))
  const boss = solo('boss', {
    script: [
      calls('subagent_create', { name: 'h', message: 'go' }),
      says('It failed.'),
      says('Good.'),
    ],
    tools: [{ name: helper, resumable: {} }],
  })
  const store = memoryStore()
  const { commit } = store
  let isBroken = true
  store.commit = async (wanted: Commit) => {
    const { agent } = (await store.head(wanted.threads[0]!.id)) ?? {}
    if (isBroken && wanted.point === 'session_start' && agent === 'helper') throw new Error('no')
    return commit.call(store, wanted)
  }
  const it = await simulate({ agents: [boss], store })
  const id = await it.create({ message: 'please' })
  await it.timers.advance(100)
  const reference = await childOf(it, id)
  for (let tries = 0; tries < 50; tries++) {
    if ((await it.events(reference, 'error_raised')).length > 0) break
    await it.timers.advance(60_000)
  }
  const [opened] = await it.events(id, 'interrupt_opened')
  const answers = async () =>
    (await it.events(id, 'interrupt_answered')).filter(
      ({ interruptId }) => interruptId === opened?.interrupt.id,
    )
  expect(await answers()).toMatchObject([{ answer: { type: 'error' } }])
  isBroken = false
  await it.threads.resume(reference)
  await it.runtime.idle()
  expect(await answers()).toHaveLength(1)
  // The late result reaches the parent as a message.
  expect(linesOf(requestsOf(boss)[2]).at(-1)).toContain('found after all')
})
