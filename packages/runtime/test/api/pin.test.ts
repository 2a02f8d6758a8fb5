import { calls, says, scripted } from '@skein/ai/testing'
import { createRegistry, defineTool, type RuntimeEvent } from '@skein/runtime'
import { expect, test } from 'vitest'
import { agentOf, logOf, Machine } from './machine.ts'

/** An agent whose session waits for an approval. The description of its tool tells two versions apart. */
function payer(description: string, ran: string[] = []) {
  const pay = defineTool({
    name: 'pay',
    description,
    risk: 'write_high_risk',
    rollback: 'impossible',
    execute: () => {
      ran.push(description)
      return 'paid'
    },
  })
  const model = scripted(({ messages }) =>
    messages.at(-1)?.type === 'tool_result' ? says(`Paid by ${description}.`) : calls('pay', {}),
  )
  return agentOf('payer', model, [pay])
}

const raised = (log: readonly RuntimeEvent[]) => log.filter(({ type }) => type === 'error_raised')

async function waiting(machine: Machine, pin: 'none' | 'session') {
  const first = await machine.boot({ agents: [payer('one')], pin })
  const { id } = await first.threads.create({ agent: 'payer', message: 'go' })
  await machine.timers.advance(100)
  await first.stop()
  return id
}

test('a session records the hash of its definitions', async () => {
  const machine = new Machine()
  const id = await waiting(machine, 'none')
  const { hash } = createRegistry({ agents: [payer('one')] }).agent('payer')
  const starts = (await logOf(machine.store, id)).filter(({ type }) => type === 'session_start')
  expect(starts).toMatchObject([{ agent: 'payer', definitions: hash }])
})

test('without a pin a session continues with the definitions of the new process', async () => {
  const machine = new Machine()
  const id = await waiting(machine, 'none')
  const ran: string[] = []
  const second = await machine.boot({ agents: [payer('two', ran)] })
  const [item] = await second.inbox.list()
  await second.inbox.approve({ ...item!, by: 'ann' })
  await machine.timers.advance(100)
  expect(ran).toEqual(['two'])
  expect((await second.threads.settled(id)).text).toBe('Paid by two.')
})

test('a pinned session waits visibly in a process with other definitions, and goes on where they are', async () => {
  const machine = new Machine()
  const id = await waiting(machine, 'session')
  const ran: string[] = []
  const second = await machine.boot({ agents: [payer('two', ran)], pin: 'session' })
  const [item] = await second.inbox.list()
  await second.inbox.approve({ ...item!, by: 'ann' })
  await machine.run(120_000)
  await second.idle()
  expect(await second.threads.get(id)).toMatchObject({ lifecycle: 'waiting', attempts: 0 })
  expect((await machine.store.head(id))?.lease).toBeNull()
  expect(raised(await logOf(machine.store, id))).toEqual([
    {
      type: 'error_raised',
      at: expect.any(String) as string,
      code: 'AGENT_CHANGED',
      message: expect.stringMatching(
        /^Waits for the definitions [0-9a-f]{8} of the agent "payer"/,
      ) as string,
      hint: expect.stringContaining('stop the thread and resume it') as string,
    },
  ])
  // Other threads of the new definitions work.
  const fresh = await second.threads.create({ agent: 'payer', message: 'go' })
  await machine.timers.advance(100)
  expect(await second.inbox.list()).toMatchObject([{ threadId: fresh.id }])
  await second.stop()

  const third = await machine.boot({ agents: [payer('one', ran)], pin: 'session' })
  await machine.timers.advance(100)
  expect((await third.threads.settled(id)).text).toBe('Paid by one.')
  expect(ran).toEqual(['one'])
  expect(machine.errors).toEqual([])
})

test('a pinned session goes on when the definitions are replaced by its own again', async () => {
  const machine = new Machine()
  const runtime = await machine.boot({ agents: [payer('one')], pin: 'session' })
  const { id } = await runtime.threads.create({ agent: 'payer', message: 'go' })
  await machine.timers.advance(100)
  runtime.replaceRegistry(createRegistry({ agents: [payer('two')] }))
  const [item] = await runtime.inbox.list()
  await runtime.inbox.approve({ ...item!, by: 'ann' })
  await machine.timers.advance(100)
  expect(await runtime.threads.get(id)).toMatchObject({ lifecycle: 'waiting' })
  runtime.replaceRegistry(createRegistry({ agents: [payer('one')] }))
  await machine.timers.advance(100)
  expect((await runtime.threads.settled(id)).text).toBe('Paid by one.')
})

test('stop and resume move a pinned thread to the definitions that are there', async () => {
  const machine = new Machine()
  const id = await waiting(machine, 'session')
  const second = await machine.boot({ agents: [payer('two')], pin: 'session' })
  await machine.timers.advance(100)
  await second.threads.stop(id)
  await machine.timers.advance(100)
  expect(await second.threads.get(id)).toMatchObject({ lifecycle: 'stopped' })
  await second.threads.resume(id)
  await machine.timers.advance(100)
  const { hash } = createRegistry({ agents: [payer('two')] }).agent('payer')
  const starts = (await logOf(machine.store, id)).filter(({ type }) => type === 'session_start')
  expect(starts.at(-1)).toMatchObject({ definitions: hash })
})

test('a session of an older log, without a hash, continues although sessions are pinned', async () => {
  const machine = new Machine()
  const commit = machine.store.commit.bind(machine.store)
  machine.store.commit = (given) => {
    const threads = given.threads.map((change) => ({
      ...change,
      append: change.append?.map((event) => {
        if (event.type !== 'session_start') return event
        const { definitions: _, ...old } = event
        return old
      }),
    }))
    return commit({ ...given, threads })
  }
  const id = await waiting(machine, 'session')
  machine.store.commit = commit
  const second = await machine.boot({ agents: [payer('two')], pin: 'session' })
  const [item] = await second.inbox.list()
  await second.inbox.approve({ ...item!, by: 'ann' })
  await machine.timers.advance(100)
  expect((await second.threads.settled(id)).text).toBe('Paid by two.')
})
