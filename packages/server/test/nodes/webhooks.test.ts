import { startWebhooks, type Webhooks } from '@skein/server'
import { afterEach, expect, test } from 'vitest'
import { agentOf } from '../../../runtime/test/api/machine.ts'
import { Cluster, type ClusterNode, paced, until } from './cluster.ts'

let cluster: Cluster
const started: Webhooks[] = []
afterEach(async () => {
  await cluster.stop()
  for (const webhooks of started.splice(0)) await webhooks.stop()
})

const limits = { leaseMs: 900 }
const agents = () => [
  agentOf(
    'talker',
    paced(1, () => 'hi'),
  ),
]

interface Got {
  readonly by: string
  readonly id: string
}

async function start(node: ClusterNode, got: Got[]): Promise<Webhooks> {
  const webhooks = await startWebhooks(node.runtime, {
    webhooks: [
      {
        url: 'https://hooks.example/in',
        secret: `whsec_${Buffer.alloc(32, 3).toString('base64')}`,
        events: ['session.ended'],
      },
    ],
    post: async ({ headers }) => {
      await new Promise((resolve) => setTimeout(resolve, 2))
      if (node.freezer.isFrozen) return new Promise<never>(() => {})
      got.push({ by: node.name, id: headers['webhook-id']! })
      return 200
    },
  })
  started.push(webhooks)
  return webhooks
}

const run = async (node: ClusterNode): Promise<void> => {
  const { id } = await node.runtime.threads.create({ agent: 'talker' })
  await node.runtime.threads.run(id, 'hi')
}

test('one node sends webhooks for all; when it stops or dies, another goes on with what was not sent', async () => {
  cluster = new Cluster()
  const got: Got[] = []
  const names = ['a', 'b', 'c']
  for (const name of names) await cluster.add(name, { agents: agents(), limits })
  const [a, b, c] = names.map((name) => cluster.nodes.get(name)!) as [
    ClusterNode,
    ClusterNode,
    ClusterNode,
  ]
  await start(a, got)
  await until(async () => (await cluster.store.counters('limit lead')).size > 0)
  await start(b, got)
  await start(c, got)
  for (let index = 0; index < 9; index++) await run([a, b, c][index % 3]!)
  await until(() => got.length >= 9)
  expect(new Set(got.map(({ by }) => by))).toEqual(new Set(['a']))

  // A node that stops in good order says so: the next begins at once, and sends nothing again.
  await a.runtime.stop()
  for (let index = 0; index < 6; index++) await run([b, c][index % 2]!)
  await until(() => got.length >= 15)
  const second = got[9]!.by
  expect(second).not.toBe('a')

  // A node that dies: what happens meanwhile is sent by the last one within a lease.
  const [dead, last] = second === 'b' ? [b, c] : [c, b]
  dead.freezer.freeze()
  const diedAt = Date.now()
  for (let index = 0; index < 3; index++) await run(last)
  await until(() => got.length >= 18)
  expect(Date.now() - diedAt).toBeLessThan(limits.leaseMs * 1.5)
  await new Promise((resolve) => setTimeout(resolve, 300))
  expect(got.slice(15).map(({ by }) => by)).toEqual([last.name, last.name, last.name])
  expect(new Set(got.map(({ id }) => id)).size).toBe(18)
  expect(got.length).toBe(18)
})
