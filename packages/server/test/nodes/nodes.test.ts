import { systemTimers } from '@skein/runtime'
import { afterEach, expect, test } from 'vitest'
import type { NumberedEvent, SubscribeOptions } from '../../../runtime/src/contract/subscription.ts'
import { Relay, type RelayParts } from '../../../runtime/src/nodes/relay.ts'
import { agentOf } from '../../../runtime/test/api/machine.ts'
import { Cluster, type ClusterNode, paced, until } from './cluster.ts'

let cluster: Cluster
afterEach(() => cluster?.stop())

const wordy = Array.from({ length: 20 }, (_, index) => `w${index}`).join(' ')

async function read(
  { runtime }: ClusterNode,
  threadId: string,
  options: SubscribeOptions = {},
  events: NumberedEvent[] = [],
): Promise<NumberedEvent[]> {
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

const freeze = (name: string): void => cluster.nodes.get(name)!.freezer.freeze()
const thaw = (name: string): void => cluster.nodes.get(name)!.freezer.thaw()

/** An agent whose model says 200 words, with 20 ms before each. */
const slowTalker = () => {
  const model = paced(20, () => Array.from({ length: 200 }, (_, index) => `w${index}`).join(' '))
  return { model, agents: [agentOf('talker', model)] }
}

async function working(id: string): Promise<void> {
  await until(async () =>
    (await cluster.store.events(id)).some(({ event }) => event.type === 'step_start'),
  )
  await new Promise((resolve) => setTimeout(resolve, 60))
}

test('stop at another node ends the model call at once', async () => {
  cluster = new Cluster()
  const { model, agents } = slowTalker()
  const a = await cluster.add('a', { agents })
  const b = await cluster.add('b', { agents, maxConcurrent: 0 })
  const { id } = await a.runtime.threads.create({ agent: 'talker', message: 'hi' })
  await working(id)
  const stoppedAt = Date.now()
  await b.runtime.threads.stop(id, { by: 'ann' })
  await until(async () => (await cluster.store.head(id))?.lifecycle === 'stopped')
  expect(Date.now() - stoppedAt).toBeLessThan(1_000)
  expect(model.asked[0]?.signal.aborted).toBe(true)
})

test('a message that cuts the running turn, and an edit, reach the node that works', async () => {
  cluster = new Cluster()
  const { model, agents } = slowTalker()
  const a = await cluster.add('a', { agents })
  const b = await cluster.add('b', { agents, maxConcurrent: 0 })
  const { id } = await a.runtime.threads.create({ agent: 'talker', message: 'hi' })
  await working(id)
  await b.runtime.threads.send(id, { text: 'no, this', ifBusy: 'restart' })
  await until(() => model.asked.length === 2, { ms: 2_000, what: 'the second request' })
  expect(model.asked[0]?.signal.aborted).toBe(true)
  await new Promise((resolve) => setTimeout(resolve, 60))
  const messages = await b.runtime.threads.messages(id)
  const edited = messages.findLast(({ message }) => message.type === 'user')!
  await b.runtime.threads.updateMessage(id, edited.id, 'or that')
  await until(() => model.asked.length === 3, { ms: 2_000, what: 'the third request' })
  expect(model.asked[1]?.signal.aborted).toBe(true)
})

test('terminate at another node resolves when the drain there has ended', async () => {
  cluster = new Cluster()
  const { model, agents } = slowTalker()
  const a = await cluster.add('a', { agents })
  const b = await cluster.add('b', { agents, maxConcurrent: 0 })
  const { id } = await a.runtime.threads.create({ agent: 'talker', message: 'hi' })
  await working(id)
  await b.runtime.threads.terminate(id, { by: 'ann' })
  const head = await cluster.store.head(id)
  expect([head?.lifecycle, head?.lease, head?.wakeAt]).toEqual(['terminated', null, null])
  expect(model.asked[0]?.signal.aborted).toBe(true)
  expect((await cluster.store.events(id)).map(({ event }) => event.type)).toContain('session_end')
})

test('a notice of a stop that comes late does not end the next drain', async () => {
  cluster = new Cluster()
  const { model, agents } = slowTalker()
  const a = await cluster.add('a', { agents })
  const b = await cluster.add('b', { agents, maxConcurrent: 0 })
  const { id } = await a.runtime.threads.create({ agent: 'talker', message: 'hi' })
  await working(id)
  await b.runtime.threads.stop(id, { by: 'ann' })
  await until(async () => (await cluster.store.head(id))?.lifecycle === 'stopped')
  await b.runtime.threads.send(id, 'go on')
  await b.runtime.threads.resume(id)
  await until(() => model.asked.length === 2)
  for (const { listener } of cluster.network.nodes)
    listener?.notice({ type: 'interrupt', threadId: id, reason: 'stop_requested' })
  await new Promise((resolve) => setTimeout(resolve, 200))
  expect(model.asked[1]?.signal.aborted).toBe(false)
})

test('readers at another node end when a thread is removed, and `changes` says so', async () => {
  cluster = new Cluster()
  const agents = [
    agentOf(
      'talker',
      paced(1, () => 'hi'),
    ),
  ]
  const a = await cluster.add('a', { agents })
  const b = await cluster.add('b', { agents })
  const { id } = await a.runtime.threads.create({ agent: 'talker', message: 'hi' })
  const seen: string[] = []
  const leaving = new AbortController()
  const changes = (async () => {
    for await (const { id: changed, lifecycle } of b.runtime.changes({ signal: leaving.signal }))
      seen.push(`${changed === id} ${lifecycle}`)
  })()
  const reading = (async () => {
    for await (const _ of b.runtime.subscribe(id));
  })()
  await until(async () => (await cluster.store.head(id))?.lifecycle === 'idle')
  await a.runtime.threads.remove(id)
  await reading
  await until(() => seen.includes('true erased'))
  leaving.abort()
  await changes
  expect(seen).toContain('true idle')
})

test('a node that dies: another goes on after its lease, and its readers get a step_reset', async () => {
  cluster = new Cluster()
  const { model, agents } = slowTalker()
  const short = paced(1, () => wordy)
  const limits = { leaseMs: 1_500 }
  const a = await cluster.add('a', { agents, limits })
  const b = await cluster.add('b', { agents: [agentOf('talker', short)], limits })
  const { id } = await a.runtime.threads.create({ agent: 'talker' })
  const got: NumberedEvent[] = []
  const reading = read(b, id, {}, got)
  const other = read(b, id, { includesDeltas: false })
  await a.runtime.threads.send(id, 'hi')
  await until(() => textOf(got).includes('w9'))
  // Its process stands still: nothing of it reaches the store, and nobody reaches it.
  freeze('a')
  const events = await reading
  await other
  await storedAre(events, id)
  expect(model.asked.length + short.asked.length).toBe(2)
  const reset = events.findIndex(({ event }) => event.type === 'step_reset')
  expect(textOf(events.slice(0, reset))).toMatch(/^w0/)
  expect(textOf(events.slice(reset))).toBe(wordy)
})

test('nodes hold threads for 7.5 s, so that another goes on within 10 s; limits.leaseMs changes that', async () => {
  cluster = new Cluster()
  const held = async (name: string, limits?: { readonly leaseMs: number }): Promise<number> => {
    const { runtime } = await cluster.add(name, { agents: slowTalker().agents, limits })
    const { id } = await runtime.threads.create({ agent: 'talker', message: 'hi' })
    await working(id)
    const { lease } = (await cluster.store.head(id))!
    await runtime.stop({ graceMs: 0 })
    return lease!.until - Date.now()
  }
  const ms = await held('a')
  expect(ms).toBeGreaterThan(5_000)
  expect(ms).toBeLessThanOrEqual(7_500)
  expect(await held('b', { leaseMs: 20_000 })).toBeGreaterThan(15_000)
})

test('a frozen owner that wakes up: its writes are refused, and the log is that of the other', async () => {
  cluster = new Cluster()
  const model = paced(20, () => 'from the frozen node')
  const limits = { leaseMs: 600 }
  const a = await cluster.add('a', { agents: [agentOf('talker', model)], limits })
  const b = await cluster.add('b', {
    agents: [
      agentOf(
        'talker',
        paced(1, () => 'from the other'),
      ),
    ],
    limits,
  })
  const { id } = await a.runtime.threads.create({ agent: 'talker', message: 'hi' })
  await until(() => model.asked.length === 1)
  freeze('a')
  await read(b, id)
  const log = await cluster.store.events(id)
  thaw('a')
  await new Promise((resolve) => setTimeout(resolve, 400))
  expect(await cluster.store.events(id)).toEqual(log)
  const said = log.flatMap(({ event }) =>
    event.type === 'message_added' && event.message.type === 'assistant' ? [event.message] : [],
  )
  expect(said).toMatchObject([{ content: [{ text: 'from the other' }] }])
})

test('an answer of another node that breaks after its head does not end the process', async () => {
  const unhandled: unknown[] = []
  const note = (reason: unknown): void => void unhandled.push(reason)
  process.on('unhandledRejection', note)
  const broken = new ReadableStream({ start: (stream) => stream.error(new Error('cut')) })
  const answers: Record<string, () => Response> = {
    GET: () => new Response(new ReadableStream()),
    POST: () => new Response(broken, { status: 500 }),
  }
  const lease = { owner: 'a', address: 'http://a.test', until: Infinity }
  const relay = new Relay({
    owner: 'b',
    secret: 'a-secret',
    fetch: async (_: unknown, { method = 'GET' }: RequestInit = {}) => answers[method]!(),
    store: { head: async () => ({ lease }) },
    live: { channel: () => ({ deltaReaders: 1 }) },
    timers: systemTimers(),
    told: () => {},
    report: () => {},
  } as unknown as RelayParts)
  relay.reading('t')
  await until(() => relay.forward('t', []))
  await new Promise((resolve) => setTimeout(resolve, 20))
  relay.stop()
  process.off('unhandledRejection', note)
  expect(unhandled).toEqual([])
})
