import { seededRandom, type Random } from '@skein/base'
import { afterEach, describe, expect, test } from 'vitest'
import type { NumberedEvent } from '@skein/runtime'
import { agentOf } from '../../../runtime/test/api/machine.ts'
import { Cluster, type ClusterNode, paced, until } from './cluster.ts'

const isDeep = process.env['SKEIN_DEEP'] !== undefined
const timeout = 300_000

let cluster: Cluster
afterEach(() => cluster.stop())

const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

/** Reads a thread as a client does that is cut off at times and connects to any node with its last id. */
async function readAnywhere(
  nodes: () => readonly ClusterNode[],
  threadId: string,
  { random, cuts, isDone }: { random: Random; cuts: number; isDone: () => boolean },
): Promise<{ readonly events: NumberedEvent[]; readonly late: number[] }> {
  const events: NumberedEvent[] = []
  const late: number[] = []
  let after: string | undefined
  while (!isDone()) {
    const all = nodes()
    const { runtime } = all[Math.floor(random() * all.length)]!
    const cut = new AbortController()
    const timer = setTimeout(() => cut.abort(), 20 + random() * cuts)
    const options = { after, since: after, signal: cut.signal }
    for await (const one of runtime.subscribe(threadId, options)) {
      events.push(one)
      after = one.id
      if (one.event.type === 'text_delta') late.push(Date.now() - Date.parse(one.event.at))
    }
    clearTimeout(timer)
  }
  return { events, late }
}

/** Checks that a reader got every stored event once and in order, and every word of each answer once. */
async function checkAll(events: readonly NumberedEvent[], threadId: string): Promise<void> {
  const log = await cluster.store.events(threadId)
  const stored = events.filter(({ event }) => !event.type.endsWith('_delta'))
  expect(stored.map(({ id }) => Math.trunc(Number(id)))).toEqual(log.map(({ seq }) => seq))
  let said = ''
  let isInStep = false
  for (const { event } of events) {
    if (event.type === 'text_delta') {
      expect(isInStep, 'a delta comes after the start of its step').toBe(true)
      said += event.text
    }
    if (event.type === 'step_start') isInStep = true
    if (event.type === 'step_end' || event.type === 'turn_end') isInStep = false
    if (event.type === 'step_start' || event.type === 'step_reset') said = ''
    if (event.type !== 'message_added' || event.message.type !== 'assistant') continue
    const [block] = event.message.content
    // A reader that connects when the message is stored gets no deltas of it; one that got some got all.
    if (said !== '') expect(said).toBe(block?.type === 'text' ? block.text : '')
    said = ''
  }
}

const words = (count: number, from: number): string =>
  Array.from({ length: count }, (_, index) => `w${from}-${index}`).join(' ')

describe('links that lose, repeat, delay and reorder notices', () => {
  for (let seed = 1; seed <= (isDeep ? 60 : 4); seed++)
    test(`seed ${seed}: readers anywhere get everything once, in order`, { timeout }, async () => {
      const random = seededRandom(seed)
      const faults = { random, loss: random() * 0.5, duplication: random() * 0.3, maxDelayMs: 40 }
      cluster = new Cluster({ faults })
      const model = paced(2, ({ messages }) => words(15, messages.length))
      const agents = [agentOf('talker', model)]
      const names = ['a', 'b', 'c'].slice(0, 2 + Math.floor(random() * 2))
      for (const name of names) await cluster.add(name, { agents })
      const nodes = [...cluster.nodes.values()]
      const any = (): ClusterNode => nodes[Math.floor(random() * nodes.length)]!
      const { id } = await any().runtime.threads.create({ agent: 'talker' })
      let isDone = false
      const readers = Array.from({ length: 6 }, () =>
        readAnywhere(() => nodes, id, { random, cuts: 400, isDone: () => isDone }),
      )
      for (let index = 0; index < 5; index++) {
        await any().runtime.threads.send(id, `message ${index}`)
        await sleep(random() * 120)
      }
      // `until=parked` ends at every node, although notices are lost.
      await Promise.all(
        nodes.map(async ({ runtime }) => {
          for await (const _ of runtime.subscribe(id, { untilParked: true }));
        }),
      )
      const head = await cluster.store.head(id)
      expect([head?.lifecycle, head?.wakeAt]).toEqual(['idle', null])
      await sleep(2_500) // whatever was lost has been looked up by now
      isDone = true
      for (const { events } of await Promise.all(readers)) await checkAll(events, id)
      const log = await cluster.store.events(id)
      const answers = log.filter(
        ({ event }) => event.type === 'message_added' && event.message.type === 'assistant',
      )
      expect(model.asked.length).toBe(answers.length)
      expect(cluster.errors).toEqual([])
    })
})

const readerCount = isDeep ? 200 : 50

test(
  `${readerCount} readers of what another node drains, with reconnects to random nodes`,
  { timeout },
  async () => {
    cluster = new Cluster()
    const random = seededRandom(7)
    const model = paced(4, ({ messages }) => words(100, messages.length))
    const agents = [agentOf('talker', model)]
    const a = await cluster.add('a', { agents })
    await cluster.add('b', { agents, maxConcurrent: 0 })
    await cluster.add('c', { agents, maxConcurrent: 0 })
    const nodes = [...cluster.nodes.values()]
    const others = nodes.filter((node) => node !== a)
    const { id } = await a.runtime.threads.create({ agent: 'talker' })
    let isDone = false
    const reading = (at: readonly ClusterNode[]) =>
      readAnywhere(() => at, id, { random, cuts: 600, isDone: () => isDone })
    const readers = Array.from({ length: readerCount }, () => reading(others))
    const moving = Array.from({ length: 10 }, () => reading(nodes))
    const near = reading([a])
    await sleep(50)
    for (let index = 0; index < 3; index++) {
      await a.runtime.threads.send(id, `message ${index}`)
      await until(async () => (await cluster.store.head(id))?.lifecycle === 'idle')
    }
    await sleep(300)
    isDone = true
    const all = await Promise.all([...readers, ...moving])
    for (const { events } of all) await checkAll(events, id)
    const percentile = (numbers: readonly number[], part: number): number =>
      numbers.toSorted((x, y) => x - y)[Math.floor(numbers.length * part)] ?? 0
    const late = all.flatMap((one) => one.late)
    const nearby = (await near).late
    process.stdout.write(
      `${readerCount} readers at other nodes: 0 lost, 0 doubled; delta age p50 ${percentile(late, 0.5)} ms, p99 ${percentile(late, 0.99)} ms (at the node itself ${percentile(nearby, 0.5)} and ${percentile(nearby, 0.99)} ms)\n`,
    )
    expect(late.length).toBeGreaterThan(1000)
    expect(cluster.errors).toEqual([])
  },
)
