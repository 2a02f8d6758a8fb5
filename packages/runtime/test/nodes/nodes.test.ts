import { afterEach, expect, test } from 'vitest'
import type { NumberedEvent, SubscribeOptions } from '../../src/contract/runtime-api.ts'
import { agentOf } from '../api/machine.ts'
import { Cluster, type ClusterNode, paced, until } from './cluster.ts'

let cluster: Cluster
afterEach(() => cluster.stop())

const wordy = Array.from({ length: 20 }, (_, index) => `w${index}`).join(' ')

async function read(
  { runtime }: ClusterNode,
  threadId: string,
  options: SubscribeOptions = {},
): Promise<NumberedEvent[]> {
  const events: NumberedEvent[] = []
  for await (const event of runtime.subscribe(threadId, { untilParked: true, ...options }))
    events.push(event)
  return events
}

const textOf = (events: readonly NumberedEvent[]): string =>
  events.map(({ event }) => (event.type === 'text_delta' ? event.text : '')).join('')

async function storedAre(events: readonly NumberedEvent[], threadId: string): Promise<void> {
  const log = await cluster.store.events(threadId)
  const stored = events.filter(({ event }) => !/_(delta|progress)$/.test(event.type))
  expect(stored.map(({ id }) => Math.trunc(Number(id)))).toEqual(log.map(({ seq }) => seq))
  expect(stored.map(({ event }) => event.type)).toEqual(log.map(({ event }) => event.type))
}

test('a reader at another node gets the log and the deltas, with the same numbers', async () => {
  cluster = new Cluster()
  const model = paced(5, () => wordy)
  const agents = [agentOf('talker', model)]
  const a = await cluster.add('a', { agents })
  const b = await cluster.add('b', { agents, maxConcurrent: 0 })
  const { id } = await a.runtime.threads.create({ agent: 'talker' })
  const reading = [read(a, id), read(b, id)]
  await a.runtime.threads.send(id, 'hi')
  const [atA, atB] = await Promise.all(reading)
  await storedAre(atA!, id)
  await storedAre(atB!, id)
  expect(textOf(atA!)).toBe(wordy)
  expect(textOf(atB!)).toBe(wordy)
  // Both name the same pieces; a reader that is late gets several as one.
  const ids = new Set(atA!.map((event) => event.id))
  expect(atB!.filter((event) => !ids.has(event.id))).toEqual([])
  expect(atB!.filter(({ event }) => event.type === 'text_delta').length).toBeGreaterThan(5)
  expect(cluster.errors).toEqual([])
})

test('two nodes, one thread, 20 messages from both: the model is asked once per turn', async () => {
  cluster = new Cluster()
  const model = paced(3, ({ messages }) => `seen ${messages.length}`)
  const agents = [agentOf('talker', model)]
  const nodes = [await cluster.add('a', { agents }), await cluster.add('b', { agents })]
  const { id } = await nodes[0]!.runtime.threads.create({ agent: 'talker' })
  await Promise.all(
    Array.from({ length: 20 }, async (_, index) => {
      await new Promise((resolve) => setTimeout(resolve, index * 7))
      await nodes[index % 2]!.runtime.threads.send(id, `message ${index}`)
    }),
  )
  await until(
    async () => {
      const head = await cluster.store.head(id)
      return head?.lifecycle === 'idle' && head.lease === null
    },
    { what: 'the thread to park' },
  )
  const log = (await cluster.store.events(id)).map(({ event }) => event)
  const answers = log.filter(
    (event) => event.type === 'message_added' && event.message.type === 'assistant',
  )
  expect(model.asked.length).toBe(answers.length)
  expect(log.filter(({ type }) => type === 'step_reset')).toEqual([])
  const said = log.flatMap((event) =>
    event.type === 'message_queued' ? [JSON.stringify(event)] : [],
  )
  expect(said.length).toBe(20)
})
