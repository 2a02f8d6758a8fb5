import { calls, says, scripted } from '@skein/ai/testing'
import {
  defineAgent,
  defineEffect,
  definePrompt,
  defineTool,
  StoreError,
  type AgentDefinition,
  type Store,
  type ToolDefinition,
} from '@skein/runtime'
import { expect, test } from 'vitest'
import { agentOf, killer, logOf, Machine, slowly } from './machine.ts'

function chargesOf(head: { attempts: number } | undefined): number {
  return head?.attempts ?? -1
}

test('a call that ends every process it runs in is given up, with the cause in the log', async () => {
  const machine = new Machine()
  let runs = 0
  const agents = [killer(machine.kill, () => void runs++)]
  const first = await machine.boot({ agents })
  const { id } = await first.threads.create({ agent: 'killer', message: 'go' })
  let lives = 1
  while ((await machine.run(120_000)) === 'died' && lives < 30) {
    lives++
    await machine.boot({ agents })
  }
  const head = await machine.store.head(id)
  expect(head).toMatchObject({ lifecycle: 'failed', wakeAt: null, lease: null })
  // Once beside others that may have done it, then as often as a thread may be charged.
  expect(runs).toBe(6)
  const log = await logOf(machine.store, id)
  const cause = {
    code: 'PROCESS_DIED',
    message: expect.stringContaining('while the tool crash ran') as string,
    hint: expect.any(String) as string,
  }
  expect(log.find(({ type }) => type === 'error_raised')).toMatchObject({
    code: 'DRAIN_FAILED',
    message: expect.stringContaining('while the tool crash ran') as string,
    cause,
  })
  expect(log.find(({ type }) => type === 'session_end')).toMatchObject({
    outcome: 'failed',
    reason: 'drain_failed',
    cause,
  })
})

test('the killer waits longer before each of its trials', async () => {
  const machine = new Machine()
  const starts: number[] = []
  let booted = 0
  const agents = [killer(machine.kill, () => starts.push(machine.clock.now() - booted))]
  const first = await machine.boot({ agents })
  await first.threads.create({ agent: 'killer', message: 'go' })
  while ((await machine.run(120_000)) === 'died') {
    booted = machine.clock.now()
    await machine.boot({ agents })
  }
  const waited = starts.slice(1).map((ms) => Math.floor(ms / 1000) * 1000)
  expect(waited).toEqual([0, 1000, 2000, 4000, 8000])
})

test('nobody that works beside a killer is charged or fails, however often the process dies', async () => {
  const machine = new Machine()
  // Ten threads wait for a slow model, and two have a slow read open, in every life of the process.
  const slow = agentOf('slow', slowly(machine, 40_000, 'Done.'))
  const read = defineTool({
    name: 'read',
    description: 'Reads slowly.',
    risk: 'read_only',
    execute: () => machine.sleep(20_000),
  })
  const reader = agentOf(
    'reader',
    scripted(({ messages }) =>
      messages.at(-1)?.type === 'tool_result' ? says('Read.') : calls('read', {}),
    ),
    [read],
  )
  const agents = [killer(machine.kill), slow, reader]
  const runtime = await machine.boot({ agents })
  const innocent: string[] = []
  for (let i = 0; i < 10; i++)
    innocent.push((await runtime.threads.create({ agent: 'slow', message: 'go' })).id)
  for (let i = 0; i < 2; i++)
    innocent.push((await runtime.threads.create({ agent: 'reader', message: 'go' })).id)
  const { id } = await runtime.threads.create({ agent: 'killer', message: 'go' })
  let deaths = 0
  const charges = new Set<number>()
  while ((await machine.run(300_000)) === 'died') {
    expect(deaths++).toBeLessThan(40)
    for (const other of innocent) charges.add(chargesOf(await machine.store.head(other)))
    await machine.boot({ agents })
  }
  expect([...charges]).toEqual([0])
  expect(deaths).toBeGreaterThanOrEqual(5)
  expect(await machine.store.head(id)).toMatchObject({ lifecycle: 'failed' })
  for (const other of innocent) {
    expect(await machine.store.head(other)).toMatchObject({ lifecycle: 'idle', attempts: 0 })
    expect(
      (await logOf(machine.store, other)).filter(({ type }) => type === 'error_raised'),
    ).toEqual([])
  }
})

test.each([
  ['runs once', false, 1],
  ['that may be repeated is given up', true, 5],
])('an effect that ends every process %s, and its thread goes on', async (_, idempotent, most) => {
  const machine = new Machine()
  const boom = defineEffect({ name: 'boom', idempotent, execute: () => machine.kill() })
  const agents = [agentOf('quiet', scripted([says('Hello.')]))]
  const runtime = await machine.boot({ agents, effects: [boom] })
  const { id } = await runtime.threads.create({ agent: 'quiet' })
  await runtime.threads.effects.schedule(id, 'boom', {}, { delayMs: 10 })
  let deaths = 0
  while ((await machine.run(120_000)) === 'died') {
    expect(deaths++).toBeLessThan(20)
    await machine.boot({ agents, effects: [boom] })
  }
  expect(deaths).toBe(most)
  const log = await logOf(machine.store, id)
  expect(log.filter(({ type }) => type === 'error_raised')).toMatchObject([
    { code: 'EFFECT_UNKNOWN' },
  ])
  const last = await machine.boot({ agents, effects: [boom] })
  await last.threads.send(id, 'Hello?')
  await machine.run(1000)
  expect(await last.threads.get(id)).toMatchObject({ lifecycle: 'idle', attempts: 0 })
})

test('any number of graceful stops during one model call charges nobody', async () => {
  const machine = new Machine()
  const agents = [agentOf('slow', slowly(machine, 60_000, 'At last.'))]
  const first = await machine.boot({ agents })
  const { id } = await first.threads.create({ agent: 'slow', message: 'go' })
  let runtime = first
  for (let stops = 0; stops < 8; stops++) {
    await machine.timers.advance(100)
    const stopped = runtime.stop({ graceMs: 0 })
    await machine.timers.advance(10_000)
    await stopped
    expect(await machine.store.head(id)).toMatchObject({ attempts: 0, lease: null })
    runtime = await machine.boot({ agents })
  }
  await machine.run(70_000)
  expect(await machine.store.head(id)).toMatchObject({ lifecycle: 'idle', attempts: 0 })
})

test('a drain that rejects is charged with its own error, which the log shows without secrets', async () => {
  const machine = new Machine()
  const secret = 'sk-canary-1234567890'
  const agents = [
    agentOf(
      'a',
      scripted(() => says('Hi.')),
    ),
  ]
  // Nothing of the runtime rejects by itself, so the store refuses one commit for a reason of the thread.
  const store = new Proxy(machine.store, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name)
      if (name === 'commit')
        return (commit: Parameters<Store['commit']>[0]) =>
          commit.point.startsWith('answer')
            ? Promise.reject(new TypeError(`cannot store ${secret}`))
            : target.commit(commit)
      return typeof member === 'function' ? member.bind(target) : member
    },
  })
  const runtime = await machine.boot({ agents, store })
  const { id } = await runtime.threads.create({
    agent: 'a',
    message: 'go',
    secrets: { KEY: secret },
  })
  await machine.run(60_000)
  expect(await machine.store.head(id)).toMatchObject({ lifecycle: 'failed', wakeAt: null })
  expect(machine.errors).toHaveLength(5)
  const log = await logOf(machine.store, id)
  const [raised] = log.filter(({ type }) => type === 'error_raised')
  const stack = expect.stringMatching(/^at .*poison\.test\.ts:\d+/) as string
  expect(raised).toMatchObject({ cause: { message: 'cannot store [redacted]', stack } })
  expect(JSON.stringify(log)).not.toContain(secret)
  expect(JSON.stringify(raised)).not.toContain('/packages/')
  expect(log.find(({ type }) => type === 'session_end')).toMatchObject({
    message: expect.stringContaining('cannot store [redacted]') as string,
    cause: { message: 'cannot store [redacted]', stack },
  })
})

test('a child that has reported and cannot end its own children is given up, and its parent is notified once', async () => {
  const machine = new Machine()
  const finish = defineTool({
    name: 'finish',
    description: 'Ends the session.',
    risk: 'read_only',
    execute: () => 'ended',
  })
  /** A model that makes these calls, one after the other, and then says that it is done. */
  const making = (...tools: string[]) =>
    scripted(({ messages }) => {
      const made = messages.filter(({ type }) => type === 'tool_result').length
      return tools[made] === undefined ? says('Done.') : calls(tools[made], {})
    })
  const subagent = (name: string, tools: readonly (AgentDefinition | ToolDefinition)[]) => {
    const model = making(...tools.map((tool) => tool.name))
    const prompt = definePrompt({ name, prompt: 'Work.', model, tools })
    return defineAgent({
      name,
      type: 'dual_ai',
      exposeAsTool: true,
      toolDescription: 'Works.',
      sideA: { prompt, sessionStop: { name: 'finish' } },
      sideB: {
        prompt: definePrompt({ name: `${name}-b`, prompt: 'Listen.', model: making() }),
      },
    })
  }
  const worker = subagent('worker', [subagent('helper', [finish]), finish])
  const prompt = definePrompt({
    name: 'boss',
    prompt: 'Lead.',
    model: making('worker'),
    tools: [worker],
  })
  const boss = defineAgent({ name: 'boss', sideA: { prompt } })
  const store = new Proxy(machine.store, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name)
      if (name === 'commit')
        return (commit: Parameters<Store['commit']>[0]) =>
          commit.point === 'cascade'
            ? Promise.reject(new TypeError('it cannot be stored'))
            : target.commit(commit)
      return typeof member === 'function' ? member.bind(target) : member
    },
  })
  const runtime = await machine.boot({ agents: [boss], store })
  const { id } = await runtime.threads.create({ agent: 'boss', message: 'go' })
  await machine.run(600_000)
  const log = await logOf(machine.store, id)
  expect(log.filter(({ type }) => type === 'session_start')).toHaveLength(1)
  expect(log.filter(({ type }) => type === 'subagent_ended')).toHaveLength(1)
  const [child] = await machine.store.list({ parentId: id })
  expect(child).toMatchObject({ lifecycle: 'terminated', wakeAt: null })
})

test('a thread whose session cannot be ended is given up too, and continues with a message', async () => {
  const machine = new Machine()
  let isBroken = true
  machine.between = (store) =>
    new Proxy(store, {
      get(target, name) {
        const member: unknown = Reflect.get(target, name)
        if (name === 'commit')
          return (commit: Parameters<Store['commit']>[0]) =>
            isBroken && commit.point.includes('session_end')
              ? Promise.reject(new TypeError('the end cannot be made'))
              : target.commit(commit)
        return typeof member === 'function' ? member.bind(target) : member
      },
    })
  const model = scripted(() => says('Hi.'))
  const runtime = await machine.boot({ agents: [agentOf('a', model)] })
  const { id } = await runtime.threads.create({ agent: 'a', message: 'go' })
  await machine.run(600_000)
  expect(machine.errors).toHaveLength(5)
  expect(await machine.store.head(id)).toMatchObject({ lifecycle: 'failed', wakeAt: null })
  const log = await logOf(machine.store, id)
  expect(log.filter(({ type }) => type === 'error_raised')).toMatchObject([
    {
      code: 'DRAIN_FAILED',
      hint: 'Fix the cause, then send the thread a message.',
      cause: { message: 'the end cannot be made' },
    },
  ])
  isBroken = false
  await runtime.threads.send(id, 'again')
  await machine.run(60_000)
  expect(await machine.store.head(id)).toMatchObject({ lifecycle: 'idle', wakeAt: null })
})

test('a store that fails is not the fault of a thread', async () => {
  const machine = new Machine()
  let isBroken = true
  const store = new Proxy(machine.store, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name)
      if (name === 'commit')
        return (commit: Parameters<Store['commit']>[0]) =>
          isBroken && commit.point.startsWith('answer')
            ? Promise.reject(new StoreError('The disk is full.', { code: 'STORE_CORRUPT' }))
            : target.commit(commit)
      return typeof member === 'function' ? member.bind(target) : member
    },
  })
  const runtime = await machine.boot({
    agents: [
      agentOf(
        'a',
        scripted(() => says('Hi.')),
      ),
    ],
    store,
  })
  const { id } = await runtime.threads.create({ agent: 'a', message: 'go' })
  await machine.run(60_000)
  expect(machine.errors.length).toBeGreaterThan(5)
  expect(await machine.store.head(id)).toMatchObject({ attempts: 0, lifecycle: 'running' })
  isBroken = false
  await machine.run(60_000)
  expect(await machine.store.head(id)).toMatchObject({ lifecycle: 'idle' })
})

test('a stop that uses an answer about a write, undoes the write and dies is ended by the next process', async () => {
  const machine = new Machine()
  const world: string[] = []
  let mayClaim = Promise.resolve()
  const dies = { inPay: true, inUndo: true }
  const pay = defineTool({
    name: 'pay',
    description: 'Pays.',
    risk: 'write_high_risk',
    rollback: () => ({ type: 'tool_call', target: 'undo', payload: {} }),
    execute: () => {
      world.push('pay')
      return dies.inPay ? machine.kill() : 'paid'
    },
  })
  const undo = defineTool({
    name: 'undo',
    description: 'Undoes.',
    risk: 'write_low_risk',
    idempotent: true,
    execute: () => void world.push('undo'),
  })
  const model = scripted(({ messages }) =>
    messages.at(-1)?.type === 'tool_result' ? says('Done.') : calls('pay', {}),
  )
  const agents = [agentOf('payer', model, [pay, undo])]
  const boot = () => machine.boot({ agents })
  // Claims wait while a person acts, and the process dies once it has stored the first part of an undo.
  machine.between = (store) =>
    new Proxy(store, {
      get(target, name) {
        const member: unknown = Reflect.get(target, name)
        if (name === 'claim')
          return async (...given: Parameters<Store['claim']>) => {
            await mayClaim
            return target.claim(...given)
          }
        if (name === 'commit')
          return async (commit: Parameters<Store['commit']>[0]) => {
            const result = await target.commit(commit)
            if (commit.point.includes('undo') && dies.inUndo) await machine.kill()
            return result
          }
        return typeof member === 'function' ? member.bind(target) : member
      },
    })
  /** Lets time pass until the process dies or something is true. Signatures are made in real time. */
  const until = async (isTrue: () => Promise<boolean> = async () => false): Promise<boolean> => {
    for (let turns = 0; turns < 500 && !(await isTrue()); turns++) {
      if ((await machine.run(100)) === 'died') return true
      await new Promise((resolve) => setTimeout(resolve, 2))
    }
    return false
  }
  const first = await boot()
  const { id } = await first.threads.create({ agent: 'payer', message: 'go' })
  await until(async () => (await first.inbox.list()).length > 0)
  await first.inbox.approve({ ...(await first.inbox.list())[0]!, by: 'ann' })
  expect(await until()).toBe(true)

  dies.inPay = false
  const second = await boot()
  await until(async () => (await second.inbox.list()).length > 0)
  const [question] = await second.inbox.list()
  let release = (): void => {}
  mayClaim = new Promise((resolve) => (release = resolve))
  await second.inbox.settle({ ...question!, by: 'ann' }, 'applied')
  await second.threads.stop(id)
  release()
  expect(await until()).toBe(true)

  dies.inUndo = false
  await boot()
  const isOver = async () => (await machine.store.head(id))?.wakeAt === null
  await until(isOver)
  expect(machine.errors).toEqual([])
  expect(await machine.store.head(id)).toMatchObject({ lifecycle: 'stopped', wakeAt: null })
  expect(world).toEqual(['pay', 'undo'])
})
