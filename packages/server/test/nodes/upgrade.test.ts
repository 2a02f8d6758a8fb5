import { calls, says, scripted } from '@skein/ai/testing'
import { createRegistry, defineTool } from '@skein/runtime'
import { afterEach, expect, test } from 'vitest'
import { agentOf } from '../../../runtime/test/api/machine.ts'
import { Cluster, until } from './cluster.ts'

let cluster: Cluster
afterEach(() => cluster.stop())

/** An agent that asks for an approval; its version is in the description of its tool. */
function payer(version: string, ran: string[]) {
  const pay = defineTool({
    name: `pay_${version}`,
    description: version,
    risk: 'write_high_risk',
    rollback: 'impossible',
    execute: () => {
      ran.push(version)
      return 'paid'
    },
  })
  const model = scripted(({ messages }) =>
    messages.at(-1)?.type === 'tool_result'
      ? says(`Paid by ${version}.`)
      : calls(`pay_${version}`, {}),
  )
  return agentOf('payer', model, [pay])
}

test('a rolling upgrade: sessions of the old version end with it, new ones begin with the new, none fails', async () => {
  cluster = new Cluster()
  const ran: string[] = []
  const old = await cluster.add('old', { agents: [payer('one', ran)] })
  const begun: string[] = []
  for (let index = 0; index < 5; index++)
    begun.push((await old.runtime.threads.create({ agent: 'payer', message: 'go' })).id)
  await until(async () => (await old.runtime.inbox.list()).length === 5)
  // The new version starts beside the old one, which then drains.
  const next = await cluster.add('next', {
    agents: [payer('two', ran)],
    previous: createRegistry({ agents: [payer('one', ran)] }),
    pin: 'session',
  })
  const approve = async (threadId: string): Promise<void> => {
    const item = (await next.runtime.inbox.list()).find((one) => one.threadId === threadId)
    await next.runtime.inbox.approve({ ...item!, by: 'ann' })
  }
  await approve(begun[0]!)
  await old.runtime.stop()
  for (const id of begun.slice(1)) await approve(id)
  const fresh = await next.runtime.threads.create({ agent: 'payer', message: 'go' })
  await until(async () => (await next.runtime.inbox.list()).length === 1)
  await approve(fresh.id)
  await until(async () => ran.length === 6)
  for (const id of begun) expect((await next.runtime.threads.settled(id)).text).toBe('Paid by one.')
  expect((await next.runtime.threads.settled(fresh.id)).text).toBe('Paid by two.')
  expect(ran.toSorted()).toEqual(['one', 'one', 'one', 'one', 'one', 'two'])
  // A thread of the old version begins its next session with the new one.
  await next.runtime.threads.send(begun[0]!, 'again')
  await until(async () => (await next.runtime.inbox.list()).length === 1)
  await approve(begun[0]!)
  await until(() => ran.length === 7)
  expect(ran.at(-1)).toBe('two')
  for (const id of [...begun, fresh.id])
    expect((await cluster.store.head(id))?.lifecycle).not.toBe('failed')
  expect(cluster.errors).toEqual([])
})

test('an agent that only the old version has goes on until its session ends', async () => {
  cluster = new Cluster()
  const ran: string[] = []
  const old = await cluster.add('old', { agents: [payer('one', ran)] })
  const { id } = await old.runtime.threads.create({ agent: 'payer', message: 'go' })
  await until(async () => (await old.runtime.inbox.list()).length === 1)
  await old.runtime.stop()
  const other = agentOf(
    'other',
    scripted(() => says('hi')),
  )
  const previous = createRegistry({ agents: [payer('one', ran)] })
  const next = await cluster.add('next', { agents: [other], previous })
  const [item] = await next.runtime.inbox.list()
  await next.runtime.inbox.approve({ ...item!, by: 'ann' })
  await until(() => ran.length === 1)
  expect((await next.runtime.threads.settled(id)).text).toBe('Paid by one.')
})
