import { calls, says, scripted } from '@skein/ai/testing'
import {
  createRegistry,
  defineAgent,
  defineEffect,
  definePrompt,
  defineTool,
  StoreError,
  type Commit,
  type Store,
} from '@skein/runtime'
import { expect, test } from 'vitest'
import { agentOf, logOf, Machine, slowly } from './machine.ts'

const other = agentOf(
  'other',
  scripted(() => says('Hi.')),
)

test('a thread whose agent is gone waits, says so, is not charged, and goes on in a process that has it', async () => {
  const machine = new Machine()
  const agents = [agentOf('mine', slowly(machine, 5_000, 'Here I am.')), other]
  const first = await machine.boot({ agents })
  const { id } = await first.threads.create({ agent: 'mine', message: 'go' })
  await machine.timers.advance(100)
  const stopped = first.stop({ graceMs: 0 })
  await machine.timers.advance(10_000)
  await stopped

  const second = await machine.boot({ agents: [other] })
  await machine.run(300_000)
  const waiting = await second.threads.get(id)
  expect(waiting).toMatchObject({ lifecycle: 'waiting', agent: 'mine', attempts: 0 })
  expect((await machine.store.head(id))?.lease).toBeNull()
  await second.idle() // a thread that cannot go on here does not keep anybody waiting
  const raised = (await logOf(machine.store, id)).filter(({ type }) => type === 'error_raised')
  expect(raised).toEqual([
    {
      type: 'error_raised',
      at: expect.any(String) as string,
      code: 'AGENT_NOT_FOUND',
      message: 'Waits for the agent "mine", which is not defined here.',
      hint: expect.stringContaining('Agents here: other.') as string,
    },
  ])
  expect(machine.errors).toEqual([])
  await second.stop()

  const third = await machine.boot({ agents })
  await machine.timers.advance(100)
  expect(await third.threads.get(id)).toMatchObject({ lifecycle: 'running' })
  const statuses = (await logOf(machine.store, id)).filter(({ type }) => type === 'status_changed')
  expect(statuses.at(-1)).toMatchObject({ status: 'running' })
  await machine.run(6_000)
  expect(await third.threads.get(id)).toMatchObject({ lifecycle: 'idle' })
  expect((await third.threads.settled(id)).text).toBe('Here I am.')
})

test('a thread that waits for its agent goes on as soon as the definitions have it again', async () => {
  const machine = new Machine()
  const mine = agentOf(
    'mine',
    scripted(() => says('Back.')),
  )
  const runtime = await machine.boot({ agents: [mine] })
  const { id } = await runtime.threads.create({ agent: 'mine' })
  runtime.replaceRegistry(createRegistry({ agents: [other] }))
  await runtime.threads.send(id, 'go')
  await machine.timers.advance(100)
  expect(await runtime.threads.get(id)).toMatchObject({ lifecycle: 'waiting' })
  runtime.replaceRegistry(createRegistry({ agents: [mine] }))
  await machine.timers.advance(1)
  expect(await runtime.threads.get(id)).toMatchObject({ lifecycle: 'idle' })
})

test('an effect that is approved while the agent of its thread is gone runs when the agent is back', async () => {
  const machine = new Machine()
  const charged: unknown[] = []
  const charge = defineEffect({
    name: 'charge',
    risk: 'write_high_risk',
    execute: (_state, args) => void charged.push(args),
  })
  const mine = agentOf(
    'mine',
    scripted(() => says('Hi.')),
  )
  const definitions = { agents: [mine], effects: [charge] }
  const first = await machine.boot(definitions)
  const { id } = await first.threads.create({ agent: 'mine', message: 'go' })
  await first.threads.effects.schedule(id, 'charge', { sum: 5 }, 0)
  await machine.timers.advance(100)
  await first.stop()

  const second = await machine.boot({ agents: [other] })
  const [waiting] = await second.inbox.list()
  await second.inbox.approve({ ...waiting!, by: 'ann' })
  await machine.timers.advance(100)
  await second.stop()
  expect(charged).toEqual([])

  await machine.boot(definitions)
  await machine.timers.advance(100)
  expect(charged).toEqual([{ sum: 5 }])
})

test('a drain whose agent went while it worked ends quietly if another process has claimed the thread', async () => {
  const machine = new Machine()
  const written: string[] = []
  const commit = machine.store.commit.bind(machine.store)
  machine.store.commit = async (given: Commit) => {
    written.push(given.point)
    // The moment in which the agent is missed: another process claims the thread first.
    if (given.point === 'await_agent')
      throw new StoreError('The thread was claimed again.', { code: 'FENCED' })
    return commit(given)
  }
  const mine = agentOf(
    'mine',
    scripted(() => {
      runtime.replaceRegistry(createRegistry({ agents: [other] }))
      return says('I am gone.')
    }),
  )
  const runtime = await machine.boot({ agents: [mine] })
  await runtime.threads.create({ agent: 'mine', message: 'go' })
  await machine.timers.advance(100)
  expect(written).toContain('await_agent')
  expect(machine.errors).toEqual([])
})

test('a thread whose agent is gone can be stopped and terminated', async () => {
  const machine = new Machine()
  const first = await machine.boot({ agents: [agentOf('mine', slowly(machine, 5_000, 'x'))] })
  const ids: string[] = []
  for (let i = 0; i < 2; i++)
    ids.push((await first.threads.create({ agent: 'mine', message: 'go' })).id)
  await machine.timers.advance(100)
  first.replaceRegistry(createRegistry({ agents: [other] }))
  await first.threads.stop(ids[0]!)
  await first.threads.terminate(ids[1]!)
  await machine.timers.advance(100)
  expect(await first.threads.get(ids[0]!)).toMatchObject({ lifecycle: 'stopped' })
  expect(await first.threads.get(ids[1]!)).toMatchObject({ lifecycle: 'terminated' })
})

/** A child whose tool is governed, under a parent that waits for it. */
function family(execute: () => Promise<unknown>) {
  const pay = defineTool({ name: 'pay', description: '', risk: 'write_low_risk', execute })
  const finish = defineTool({
    name: 'finish',
    description: '',
    risk: 'read_only',
    execute: () => 1,
  })
  const side = (name: string, tool: string, more: object) => ({
    prompt: definePrompt({
      name,
      prompt: '',
      model: scripted(() => calls(tool, { text: 'x' })),
      tools: [tool === 'pay' ? pay : finish],
    }),
    ...more,
  })
  const child = defineAgent({
    name: 'child',
    type: 'dual_ai',
    maxSessionTurns: 5,
    exposeAsTool: true,
    toolDescription: 'child',
    sideA: side('child_a', 'pay', {}),
    sideB: side('child_b', 'finish', {
      sessionStop: { name: 'finish', messageProperty: 'text' },
    }),
  })
  const parent = defineAgent({
    name: 'parent',
    sideA: {
      prompt: definePrompt({
        name: 'parent_a',
        prompt: '',
        model: scripted(({ messages }) =>
          messages.at(-1)?.type === 'tool_result'
            ? says('The child failed.')
            : calls('child', { message: 'go' }),
        ),
        tools: [{ name: child }],
      }),
    },
  })
  return [parent, child]
}

test('a governed session fails without its agent and its governor, and the parent is notified', async () => {
  const machine = new Machine()
  const agents = family(() => new Promise(() => {}))
  const runtime = await machine.boot({ agents })
  const { id } = await runtime.threads.create({ agent: 'parent', message: 'go' })
  await machine.timers.advance(100)
  const [child] = await machine.store.list({ parentId: id })
  void machine.kill()
  machine.clock.advance(60_000)
  // Charged as often as a thread may be, and then the agent is gone.
  await machine.store.commit({
    point: 'test',
    threads: [{ id: child!.id, head: { attempts: 5 } }],
  })
  const second = await machine.boot({ agents: [agents[0]!].map(withoutChild) })
  await machine.run(60_000)
  // A child that is not resumable ends with its report.
  expect(await second.threads.get(child!.id)).toMatchObject({
    lifecycle: 'terminated',
    wakeAt: null,
  })
  expect(await second.threads.get(id)).toMatchObject({ lifecycle: 'idle' })
  expect((await second.threads.settled(id)).text).toBe('The child failed.')
  expect(machine.errors).toEqual([])
})

function withoutChild() {
  return agentOf(
    'parent',
    scripted(() => says('The child failed.')),
  )
}

test('a governed session whose governor cannot be opened fails with that cause', async () => {
  const machine = new Machine()
  let isBroken = false
  const pay = defineTool({
    name: 'pay',
    description: '',
    risk: 'write_low_risk',
    execute: () => {
      isBroken = true
      return 'paid'
    },
  })
  const model = scripted(({ messages }) =>
    messages.at(-1)?.type === 'tool_result' ? calls('pay', {}) : calls('pay', {}),
  )
  const prompt = definePrompt({ name: 'p', prompt: '', model, tools: [pay] })
  const store = new Proxy(machine.store, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name)
      if (name === 'audit')
        return (...given: Parameters<Store['audit']>) =>
          isBroken ? Promise.reject(new TypeError('the audit log is odd')) : target.audit(...given)
      // Forgets the open governor after each call, as a new process would.
      if (name === 'commit')
        return (commit: Parameters<Store['commit']>[0]) =>
          isBroken && commit.point === 'call_end'
            ? Promise.reject(new TypeError('the result is odd'))
            : target.commit(commit)
      return typeof member === 'function' ? member.bind(target) : member
    },
  })
  const runtime = await machine.boot({
    agents: [defineAgent({ name: 'a', sideA: { prompt } })],
    store,
  })
  const { id } = await runtime.threads.create({ agent: 'a', message: 'go' })
  await machine.run(60_000)
  expect(await machine.store.head(id)).toMatchObject({ lifecycle: 'failed', wakeAt: null })
  const end = (await logOf(machine.store, id)).find(({ type }) => type === 'session_end')
  expect(end).toMatchObject({ cause: { message: 'the audit log is odd' } })
})
