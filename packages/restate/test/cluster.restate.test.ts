import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { memoryStore, systemTimers } from '@skein/runtime'
import { restateDispatcher } from '@skein/restate'
import { tellAndCheck } from '../../postgres/test/kill-tests.ts'
import { Load } from '../../postgres/test/load.ts'
import { noPostgres, startPostgres } from '../../postgres/test/server.ts'
import { startBalancer } from './balancer.ts'
import { loadDispatcher } from './load-dispatcher.ts'
import { freePorts, missingRestate, type RestateServer, startRestate } from './server.ts'

const pass = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

// Three servers need most of a small machine, so only the deep run starts them.
const isDeep = process.env['SKEIN_DEEP'] !== undefined
const skips = !isDeep || missingRestate() !== undefined || noPostgres !== undefined

describe.skipIf(skips)('three engine nodes', () => {
  let servers: RestateServer[] = []
  beforeAll(async () => {
    const ports = await freePorts(3)
    const peers = ports.map((port) => `http://127.0.0.1:${port}/`)
    servers = await Promise.all(
      ports.map((port, index) =>
        startRestate({ name: `node-${index + 1}`, port, peers, isFirst: index === 0 }),
      ),
    )
  }, 120_000)
  afterAll(async () => {
    await Promise.all(servers.map((server) => server.stop()))
  }, 60_000)

  test('kill -9 of one of them: no wake-up is lost, and nobody waits longer than 10 s', async () => {
    const ids = Array.from({ length: 40 }, (_, index) => `t${index}`)
    const store = memoryStore()
    const threads = ids.map((id) => ({
      id,
      create: {
        tenant: '',
        owner: null,
        agent: 'test',
        parentId: null,
        rootId: id,
        title: null,
        tags: [],
        clientId: null,
        createdAt: Date.now(),
      },
    }))
    await store.commit({ point: 'create', threads })
    const asked = new Map<string, number>()
    const pauses: number[] = []
    // The node that the worker talks to stays; one of the others dies.
    const { ingressUrl, adminUrl } = servers[0]!
    const dispatcher = restateDispatcher({ ingressUrl, adminUrl, startMs: 60_000 })({
      store,
      timers: systemTimers(),
      onError: () => {},
    })
    const health = await fetch(`${adminUrl}/cluster-health`)
    const { metadata_cluster_health: metadata } = (await health.json()) as {
      metadata_cluster_health: { members: readonly string[] }
    }
    expect(metadata.members).toHaveLength(3)
    await dispatcher.start(async (id) => {
      pauses.push(performance.now() - asked.get(id)!)
      asked.delete(id)
      await store.commit({ point: 'park', threads: [{ id, wake: { exactly: null } }] })
    })
    const end = performance.now() + 20_000
    let isKilled = false
    while (performance.now() < end) {
      for (const id of ids) {
        if (asked.has(id)) continue
        asked.set(id, performance.now())
        await store.commit({ point: 'ask', threads: [{ id, wake: { by: Date.now() } }] })
        dispatcher.wake(id)
      }
      if (!isKilled && performance.now() > end - 15_000) {
        isKilled = true
        await servers[1]!.kill9()
      }
      await pass(50)
    }
    for (let i = 0; i < 200 && asked.size > 0; i++) await pass(50)
    expect([...asked.keys()]).toEqual([])
    const sorted = pauses.toSorted((a, b) => a - b).map(Math.round)
    console.log(
      `${pauses.length} wake-ups, p50 ${sorted[sorted.length >> 1]} ms, longest ${sorted.at(-1)} ms`,
    )
    expect(sorted.at(-1)).toBeLessThan(10_000)
    await dispatcher.stop()
    await servers[1]!.restart()
  }, 180_000)

  test('kill -9 of one of them under the load of two nodes: nothing lost or doubled, order kept', async () => {
    const [server, balancer, ports] = await Promise.all([
      startPostgres(),
      startBalancer(),
      freePorts(2),
    ])
    const load = await Load.open({
      server,
      dispatcher: (index) =>
        loadDispatcher({ restate: servers[0]!, balancer, port: ports[index]! }),
    })
    await Promise.all([load.start(0), load.start(1)])
    await load.begin()
    for (const engine of [1, 2]) {
      await pass(3_000)
      await servers[engine]!.kill9()
      load.watchProgress()
      await pass(8_000)
      await servers[engine]!.restart()
    }
    await tellAndCheck(load, 'an engine node killed twice')
    await load.stop()
    await Promise.all([balancer.stop(), server.stop()])
  }, 180_000)
})
