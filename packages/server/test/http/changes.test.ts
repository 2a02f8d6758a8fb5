import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createClient } from '../../src/client/index.ts'
import { memoryStore, sqliteStore, type Store } from '@skein/runtime'
import { KEYS, startKit, type Kit, type Who } from './http-kit.ts'

let kit: Kit
beforeAll(async () => {
  kit = await startKit()
})
afterAll(() => kit.stop())

function clientOf(who: Who, of: Kit = kit) {
  const fetch: typeof globalThis.fetch = (url, init) => of.http.fetch(new Request(url, init))
  return createClient({ url: 'http://localhost', apiKey: KEYS[who].key, fetch })
}

type Change =
  ReturnType<ReturnType<typeof clientOf>['changes']> extends AsyncIterable<infer T> ? T : never

/** Reads changes in the background. */
function follow(who: Who, options: { readonly after?: string; readonly of?: Kit } = {}) {
  const controller = new AbortController()
  const seen: Change[] = []
  const { after, of } = options
  const done = (async () => {
    for await (const change of clientOf(who, of).changes({ after, signal: controller.signal }))
      seen.push(change)
  })()
  return {
    seen,
    position: () => seen.at(-1)?.position,
    async until(isThere: (seen: readonly Change[]) => boolean) {
      await expect.poll(() => isThere(seen), { timeout: 5000, interval: 5 }).toBe(true)
    },
    async stop() {
      controller.abort()
      await done
    },
  }
}

const idsIn = (seen: readonly Change[]): readonly string[] =>
  seen.flatMap((change) => (change.type === 'thread' ? [change.thread.id] : []))

const isReady = (seen: readonly Change[]): boolean => seen.some(({ type }) => type === 'ready')

test('a new, running and waiting thread is shown as the list shows it, with what waits', async () => {
  const feed = follow('ada')
  await feed.until(isReady)
  expect(feed.seen).toEqual([{ type: 'ready', position: expect.any(String) }])
  const { id } = await clientOf('ada').threads.create({
    agent: 'desk',
    message: 'A refund, please',
  })
  const isWaiting = (change: Change): boolean =>
    change.type === 'thread' && change.thread.lifecycle === 'waiting' && change.waiting.length > 0
  await feed.until((seen) => seen.some(isWaiting))
  const last = feed.seen.findLast((change) => change.type === 'thread')!
  expect(last).toMatchObject({
    thread: { id, firstWords: 'A refund, please', lifecycle: 'waiting', waiting: 1 },
    waiting: [{ threadId: id, toolName: 'refund', arguments: { amount: 5 } }],
  })
  const { threads } = await kit.json<{ threads: unknown[] }>('ada', 'GET', '/threads?limit=1')
  expect(last).toMatchObject({ thread: threads[0] })
  const [item] = await clientOf('ada').inbox.list()
  await clientOf('ada').inbox.deny({ ...item!, reason: 'No.' })
  await feed.until((seen) => {
    const latest = seen.findLast((change) => change.type === 'thread')!
    return latest.type === 'thread' && latest.thread.lifecycle === 'idle' && !latest.waiting.length
  })
  await feed.stop()
})

test('a child brings the row of its root, with the sums of the tree', async () => {
  const feed = follow('ada')
  await feed.until(isReady)
  const { id } = await clientOf('ada').threads.create({ agent: 'desk', message: 'Please work.' })
  await clientOf('ada').threads.settled(id)
  await feed.until((seen) => {
    const rows = seen.filter((change) => change.type === 'thread')
    return (
      rows.some(({ thread }) => thread.parentId === id) &&
      rows.findLast(({ thread }) => thread.id === id)?.thread.lifecycle === 'idle'
    )
  })
  await feed.stop()
})

test('strangers are shown nothing: another tenant, another user of the tenant', async () => {
  const feeds = [follow('rival'), follow('bob')]
  for (const feed of feeds) await feed.until(isReady)
  const { id } = await clientOf('ada').threads.create({ agent: 'desk', message: 'note' })
  await clientOf('ada').threads.settled(id)
  const own = await clientOf('bob').threads.create({ agent: 'desk' })
  const other = await clientOf('rival').threads.create({ agent: 'desk' })
  const [rival, bob] = feeds
  await bob!.until((seen) => idsIn(seen).includes(own.id))
  await rival!.until((seen) => idsIn(seen).includes(other.id))
  for (const feed of feeds) {
    expect(JSON.stringify(feed.seen)).not.toContain(id)
    await feed.stop()
  }
  expect(new Set(idsIn(bob!.seen))).toEqual(new Set([own.id]))
  // A position of somebody else shows only what its user may see.
  const again = follow('bob', { after: '0:0:' })
  await again.until(isReady)
  expect(JSON.stringify(again.seen)).not.toContain(id)
  await again.stop()
  expect((await kit.ask(undefined, 'GET', '/changes')).status).toBe(401)
})

test('after a position comes what has changed since, each thread once', async () => {
  const first = follow('ada')
  await first.until(isReady)
  await first.stop()
  const { threads } = clientOf('ada')
  const { id } = await threads.create({ agent: 'desk' })
  for (const title of ['One', 'Two', 'Three']) await threads.update(id, { title })
  const second = follow('ada', { after: first.position()! })
  await second.until(isReady)
  expect(second.seen).toMatchObject([{ thread: { id, title: 'Three' } }, { type: 'ready' }])
  await second.stop()
  const third = follow('ada', { after: second.position()! })
  await third.until(isReady)
  expect(third.seen).toEqual([{ type: 'ready', position: second.position() }])
  await third.stop()
  const refused = await kit.ask('ada', 'GET', '/changes?after=nonsense')
  expect([refused.status, await refused.text()]).toEqual([400, expect.stringContaining('after')])
})

test('a removed thread, and a position of another store, ask for the list', async () => {
  const { id } = await clientOf('ada').threads.create({ agent: 'desk' })
  const feed = follow('ada')
  await feed.until(isReady)
  const before = feed.position()!
  await clientOf('ada').threads.remove(id)
  await feed.until((seen) => seen.at(-1)?.type === 'reset')
  await feed.stop()
  for (const after of [before, '999999999:0:']) {
    const again = follow('ada', { after })
    await again.until(isReady)
    expect(again.seen.map(({ type }) => type)).toEqual(['reset', 'ready'])
    await again.stop()
  }
})

const folder = mkdtempSync(join(tmpdir(), 'skein-changes-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** Reads one page after the other until nothing more has changed; `take` pages at most. */
async function pages(of: Kit, after: string | undefined, take: number) {
  const controller = new AbortController()
  const ids: string[] = []
  let [position, count, hasAll] = [after, 0, false]
  const query = { tenant: 'acme', after, signal: controller.signal }
  for await (const page of of.runtime.threads.changes(query)) {
    position = page.position
    ids.push(...page.threads.map(({ thread }) => thread.id))
    hasAll = page.threads.length === 0
    if (hasAll || ++count >= take) break
  }
  controller.abort()
  return { ids, position, hasAll }
}

test.each([
  ['memory', () => memoryStore()],
  ['SQLite', () => sqliteStore({ path: ':memory:' })],
])('%s: no reader that stops and goes on misses a change', async (_, open) => {
  const store: Store = open()
  const own = await startKit({ runtime: { store } })
  const { threads } = own.runtime
  const made: string[] = []
  const step = fc.oneof(
    fc.constant({ type: 'create' } as const),
    fc.record({ type: fc.constant('rename' as const), index: fc.nat(200), times: fc.nat(3) }),
    fc.record({ type: fc.constant('many' as const), count: fc.integer({ min: 90, max: 120 }) }),
    fc.record({ type: fc.constant('read' as const), take: fc.integer({ min: 1, max: 3 }) }),
  )
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 12 }), async (steps) => {
      let { position } = await pages(own, undefined, 1)
      let pending = new Set<string>()
      const read = async (take: number) => {
        const page = await pages(own, position, take)
        position = page.position
        for (const id of page.ids) pending.delete(id)
        if (page.hasAll) expect([...pending]).toEqual([])
      }
      const create = async () => {
        const { id } = await threads.create({ agent: 'desk', tenant: 'acme' })
        made.push(id)
        pending.add(id)
      }
      for (const one of steps) {
        if (one.type === 'create') await create()
        if (one.type === 'many') for (let n = 0; n < one.count; n++) await create()
        if (one.type === 'read') await read(one.take)
        const id = one.type === 'rename' ? made[one.index % made.length] : undefined
        if (id === undefined || one.type !== 'rename') continue
        for (let n = 0; n <= one.times; n++) await threads.update(id, { title: `${n}` })
        pending = pending.add(id)
      }
      await read(Infinity)
      expect([...pending]).toEqual([])
    }),
    { numRuns: process.env['SKEIN_DEEP'] ? 100 : 8 },
  )
  await own.stop()
})

test('a position holds over a restart, also when the thread of the last change was removed', async () => {
  const path = join(folder, 'restart.db')
  const first = await startKit({
    runtime: { store: sqliteStore({ path }), secretKey: new Uint8Array(32) },
  })
  const create = async (of: Kit) =>
    (await of.runtime.threads.create({ agent: 'desk', tenant: 'acme' })).id
  await create(first)
  const gone = await create(first)
  const { position: before } = await pages(first, undefined, 1)
  await first.runtime.threads.remove(gone)
  const { position } = await pages(first, before, 1)
  await first.stop()
  const second = await startKit({
    runtime: { store: sqliteStore({ path }), secretKey: new Uint8Array(32) },
  })
  const id = await create(second)
  expect((await pages(second, position, Infinity)).ids).toEqual([id])
  await second.stop()
})

test('a program that looks now and then asks until everything was sent', async () => {
  const { id } = await clientOf('ada').threads.create({ agent: 'desk' })
  const response = await kit.ask('ada', 'GET', '/changes?after=0:0:&until=ready')
  const text = await response.text()
  // Something was removed since, or the thread is there; then the stream ends.
  expect(text.includes(id) || text.includes('event: reset')).toBe(true)
  const now = /ready\nid: (.*)\n/.exec(text)![1]!
  const rest = await kit.ask('ada', 'GET', `/changes?after=${encodeURIComponent(now)}&until=ready`)
  expect(await rest.text()).toBe(`retry: 1000\n\nevent: ready\nid: ${now}\ndata: {}\n\n`)
})
