import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  type ThreadInfo,
  type WaitingItem,
  sqliteStore,
  type SqliteStore,
  type ThreadChange,
  type ThreadHead,
  type ThreadQuery,
} from '@skein/runtime'
import { orders } from '../../../runtime/src/store/select-threads.ts'
import { newThread, valueSet } from '../../../runtime/src/testing/contract.ts'
import {
  copyOfWaiting,
  type WaitingThread,
  writeThreads,
} from '../../../runtime/test/filled-store.ts'
import { readPlans, readRows } from '../../../runtime/test/read-plans.ts'
import { startKit, type Kit } from './http-kit.ts'

const folder = mkdtempSync(join(tmpdir(), 'skein-lists-'))
let kit: Kit
let store: SqliteStore
const path = join(folder, 'lists.db')
/** More than a list sorts or reads without a pause. */
const THREADS = 2400

beforeAll(async () => {
  store = sqliteStore({ path })
  kit = await startKit({ runtime: { store, secretKey: new Uint8Array(32) } })
  const lifecycles = ['idle', 'failed', 'queued', 'stopped'] as const
  const changes = Array.from({ length: THREADS }, (_, index): ThreadChange => {
    const id = `t${String(index).padStart(5, '0')}`
    const isChild = index % 2 === 1
    const tags = index % 3 === 0 ? ['many'] : index % 800 === 1 ? ['few'] : []
    const root = index < THREADS / 2 ? 't00000' : 't00002'
    return {
      id,
      create: newThread(isChild ? root : id, {
        owner: index % 5 === 0 ? 'ada' : null,
        parentId: isChild ? root : null,
        title: index % 700 === 3 ? 'A needle in the hay' : 'Hay',
        tags,
        clientId: `client-${index}`,
        createdAt: 1_000_000 + index,
      }),
      append: [valueSet(index, 2_000_000 + ((index * 7919) % THREADS))],
      head: { lifecycle: lifecycles[index % 4]!, waiting: index % 40 === 0 ? 1 : 0 },
    }
  })
  await writeThreads(store, changes)
  const fork = { thread_id: 't00000', message_id: 'm1' }
  await writeThreads(
    store,
    Array.from({ length: 3 }, (_, index) => ({
      id: `fork-${index}`,
      create: newThread(`fork-${index}`),
      append: [
        {
          type: 'thread_created',
          at: new Date(5).toISOString(),
          threadId: `fork-${index}`,
          agent: 'desk',
          version: 2,
          depth: 0,
          metadata: { forked_from: fork },
        } as const,
      ],
    })),
  )
})
afterAll(async () => {
  await kit.stop()
  await store.close()
  rmSync(folder, { recursive: true, force: true })
})

interface Page {
  readonly threads: readonly ThreadInfo[]
  readonly nextOffset?: number
  readonly nextCursor?: string
}

describe('GET /threads on SQLite', () => {
  const filters = [
    '',
    'owner=ada',
    'agent=helper',
    'lifecycle=failed',
    'lifecycle=queued',
    'lifecycle=idle',
    'roots=true',
    'parentId=t00000',
    'rootId=t00002',
    'waiting=true',
    'waiting=false',
    'search=needle',
    'tag=many',
    'tag=few',
    'tag=few&owner=ada',
    'tag=many&lifecycle=failed',
    'forkedFrom=t00000',
    'tool=refund',
    'idPart=00007',
    'clientId=client-7',
  ]
  const sorts = ['', 'sort=created', 'sort=oldest']
  /** Statements of indexes that find a small set of threads, which may be sorted. */
  const SETS = /INDEXED BY threads_by_(?:parent|root|fork)|FROM thread_t(?:ags|ools)/

  for (const filter of filters)
    test(`reads an index and sorts no table: ${filter || 'no filter'}`, async () => {
      for (const who of ['acme', 'ada'] as const)
        for (const sort of sorts) {
          const query = [filter, sort, 'limit=20'].filter(Boolean).join('&')
          const plans = await readPlans(path, async () => {
            const { nextCursor } = await kit.json<Page>(who, 'GET', `/threads?${query}`)
            await kit.json<Page>(who, 'GET', `/threads?${query}&offset=20`)
            if (nextCursor !== undefined)
              await kit.json<Page>(who, 'GET', `/threads?${query}&cursor=${nextCursor}`)
          })
          const lists = plans.filter(({ sql }) => /FROM threads\b/.test(sql))
          expect(lists.length, query).toBeGreaterThan(0)
          for (const { sql, steps } of lists) {
            expect(steps.join('; '), `${query}: ${sql}`).not.toMatch(/SCAN threads(?! USING)/)
            if (sql.includes('client_id = ?'))
              expect(steps[0], sql).toContain('threads_by_client_id (tenant=? AND client_id=?)')
            else if (!SETS.test(sql))
              expect(steps.join('; '), `${query}: ${sql}`).not.toMatch(/B-TREE/)
          }
        }
    })

  test('a list of children, and one child, read as many rows in a large tree as in a small one', async () => {
    for (const query of ['parentId=t00000&limit=20', 'sort=oldest&limit=20'])
      expect(
        await readRows(() => kit.json<Page>('acme', 'GET', `/threads?${query}`)),
        query,
      ).toBeLessThan(150)
    expect(await readRows(() => kit.json('acme', 'GET', '/threads/t00007'))).toBeLessThan(10)
  })

  test('sums over large trees are made in parts, and are whole', async () => {
    const own = sqliteStore({ path: join(folder, 'family.db') })
    const children = 4500 // more than two statements sum
    const changes = ['top', 'mid'].map((id) => ({
      id,
      create: newThread('top', { parentId: id === 'top' ? null : 'top' }),
    }))
    const below = Array.from({ length: children }, (_, index): ThreadChange => {
      const id = `c${index}`
      const create = newThread('top', { parentId: 'mid', createdAt: index % 100 })
      return { id, create }
    })
    await writeThreads(own, [...changes, ...below])
    await writeThreads(
      own,
      ['top', 'mid', 'c0', `c${children - 1}`].map((id) => ({ id, head: { tokens: 5 } })),
    )
    let turns = 0
    const timer = setInterval(() => turns++, 0)
    const usages = await own.subtreeUsage(['mid', 'top', 'c0', 'c1'])
    clearInterval(timer)
    expect([...usages].map(([id, { tokens }]) => [id, tokens])).toEqual([
      ['mid', 15],
      ['top', 20],
      ['c0', 5],
      ['c1', 0],
    ])
    expect(turns).toBeGreaterThan(0)
    await own.close()
  })

  test('pages by cursor have the same threads as pages by offset, each once', async () => {
    for (const query of ['tag=many', 'sort=oldest&owner=ada', 'lifecycle=failed&parentId=t00000']) {
      const byOffset = await allPages(query, ({ nextOffset }) => nextOffset, 'offset')
      const byCursor = await allPages(query, ({ nextCursor }) => nextCursor, 'cursor')
      expect(byCursor, query).toEqual(byOffset)
      expect(new Set(byCursor).size, query).toBe(byCursor.length)
      expect(byCursor.length, query).toBeGreaterThan(100)
    }
  })

  async function allPages(
    query: string,
    next: (page: Page) => string | number | undefined,
    name: 'offset' | 'cursor',
  ): Promise<readonly string[]> {
    const ids: string[] = []
    let place: string | number | undefined
    do {
      const from = place === undefined ? '' : `&${name}=${encodeURIComponent(place)}`
      const page = await kit.json<Page>('acme', 'GET', `/threads?${query}&limit=99${from}`)
      ids.push(...page.threads.map(({ id }) => id))
      place = next(page)
    } while (place !== undefined)
    return ids
  }

  test('sets that are too large to be sorted are read in their order', async () => {
    const all = await everything()
    const sets: readonly (readonly [ThreadQuery, (head: ThreadHead) => boolean])[] = [
      [{ parentId: 't00000' }, ({ parentId }) => parentId === 't00000'],
      [{ rootId: 't00002' }, ({ rootId }) => rootId === 't00002'],
      [{ tag: 'many', agent: 'helper' }, ({ tags }) => tags.includes('many')],
      [{ search: 'hay' }, ({ title }) => /hay/i.test(title ?? '')],
      [{ isWaiting: false, parentId: null }, (one) => one.waiting === 0 && one.parentId === null],
    ]
    for (const [query, isIn] of sets)
      for (const sort of ['activity', 'created', 'oldest'] as const) {
        const expected = all
          .filter(isIn)
          .toSorted(orders[sort])
          .map(({ id }) => id)
        const list = async (rest: ThreadQuery) =>
          (await store.list({ ...query, ...rest, sort, limit: 1000 })).map(({ id }) => id)
        const what = JSON.stringify({ ...query, sort })
        for (const tenant of ['acme', undefined]) {
          expect(await list({ tenant }), what).toEqual(expected.slice(0, 1000))
          const offset = Math.floor(expected.length / 2)
          expect(await list({ tenant, offset }), what).toEqual(
            expected.slice(offset, offset + 1000),
          )
        }
      }
  })

  /** Reads all threads by their ids. */
  async function everything(): Promise<readonly ThreadHead[]> {
    const ids = Array.from({ length: THREADS }, (_, index) => `t${String(index).padStart(5, '0')}`)
    const forks = Array.from({ length: 3 }, (_, index) => `fork-${index}`)
    return Promise.all([...ids, ...forks].map(async (id) => (await store.head(id))!))
  }

  test('a cursor of another list, or of none, is refused with what to do', async () => {
    const { nextCursor } = await kit.json<Page>('acme', 'GET', '/threads?limit=1')
    for (const query of [`sort=oldest&cursor=${nextCursor}`, 'cursor=x', 'cursor=WzEsMl0']) {
      const response = await kit.ask('acme', 'GET', `/threads?${query}`)
      expect(response.status, query).toBe(400)
      expect(((await response.json()) as { error: { code: string } }).error.code).toBe(
        'INPUT_INVALID',
      )
    }
  })

  test('a thread that moves to the front while a long list is read is in the list', async () => {
    const last = 't00001'
    const listing = store.list({ tenant: 'acme', search: 'needle', limit: 1000 })
    const title = 'Another needle in the hay'
    const append = [valueSet('moved', 9_000_000)]
    await store.commit({ point: 'test', threads: [{ id: last, append, head: { title } }] })
    expect((await listing).map(({ id }) => id)).toContain(last)
  })
})

describe('GET /approvals', () => {
  const WAITING = 1050
  let asking: Kit
  let asked: SqliteStore
  beforeAll(async () => {
    asked = sqliteStore({ path: join(folder, 'asked.db') })
    asking = await startKit({ runtime: { store: asked, secretKey: new Uint8Array(32) } })
    const { id } = await asking.runtime.threads.create({ agent: 'desk', tenant: 'acme' })
    const { waiting } = await asking.runtime.threads.run(id, 'refund, please')
    const events = (await asking.runtime.threads.events(id)).map(({ event }) => event)
    const first: WaitingThread = { threadId: id, interruptId: waiting[0]!.interruptId, events }
    await asking.runtime.threads.remove(id)
    await writeThreads(
      asked,
      Array.from({ length: WAITING }, (_, index) =>
        copyOfWaiting(first, `w${String(index).padStart(4, '0')}`, {
          tenant: index % 10 === 9 ? 'rival' : 'acme',
          owner: index % 4 === 0 ? 'ada' : 'bob',
          at: 1_700_000_000_000 + Math.floor(index / 3),
        }),
      ),
    )
  })
  afterAll(async () => {
    await asking.stop()
    await asked.close()
  })

  interface WaitingPage {
    readonly waiting: readonly WaitingItem[]
    readonly nextCursor?: string
  }

  async function pages(who: 'acme' | 'ada' | 'rival', query: string): Promise<WaitingItem[]> {
    const items: WaitingItem[] = []
    for (let cursor = ''; ;) {
      const page = await asking.json<WaitingPage>(who, 'GET', `/approvals?${query}${cursor}`)
      items.push(...page.waiting)
      if (page.nextCursor === undefined) return items
      cursor = `&cursor=${encodeURIComponent(page.nextCursor)}`
    }
  }

  test('has no end: pages by cursor have every question of the tenant once, the oldest first', async () => {
    const items = await pages('acme', 'limit=100')
    expect(items).toHaveLength(WAITING * 0.9)
    expect(new Set(items.map(({ interruptId }) => interruptId)).size).toBe(items.length)
    expect(items.map(({ openedAt }) => openedAt)).toEqual(
      items.map(({ openedAt }) => openedAt).toSorted(),
    )
    expect(items.at(-1)).toMatchObject({
      threadId: 'w1048',
      toolName: 'refund',
      arguments: { amount: 5 },
      kind: 'approval',
      path: ['desk'],
      risk: 'write_high_risk',
    })
    expect(await pages('rival', 'limit=100')).toHaveLength(WAITING / 10)
  })

  test('filters by owner, agent, kind, tree, thread and the parts of ids', async () => {
    const ids = async (who: 'acme' | 'ada', query: string) =>
      (await pages(who, query)).map(({ threadId }) => threadId)
    const own = await ids('ada', 'limit=1000')
    expect(own).toEqual(await ids('acme', 'owner=ada&limit=100'))
    expect(own).toContain('w0000')
    expect(own).not.toContain('w0001')
    expect(await ids('ada', 'owner=bob&limit=1000')).toEqual(own) // others' questions stay hidden
    expect(await ids('acme', 'agent=nobody')).toEqual([])
    expect(await ids('acme', 'kind=in_doubt')).toEqual([])
    expect(await ids('acme', 'kind=approval&limit=1000')).toHaveLength(WAITING * 0.9)
    expect(await ids('acme', 'rootId=w1048')).toEqual(['w1048'])
    expect(await ids('acme', 'threadId=w1047')).toEqual(['w1047'])
    expect(await ids('acme', 'threadIdPart=1048')).toEqual(['w1048'])
    expect(await ids('acme', 'interruptIdPart=w1048-')).toEqual(['w1048'])
    expect(await ids('acme', 'threadIdPart=w1049')).toEqual([]) // of another tenant
  })

  test('reads only the threads of the page, through an index', async () => {
    const query = 'limit=20&kind=approval'
    const first = await asking.json<WaitingPage>('acme', 'GET', `/approvals?${query}`)
    const plans = await readPlans(join(folder, 'asked.db'), () =>
      asking.json('acme', 'GET', `/approvals?${query}&cursor=${first.nextCursor}`),
    )
    for (const { sql, steps } of plans) {
      expect(steps.join('; '), sql).not.toMatch(/B-TREE/)
      expect(steps.join('; '), sql).toMatch(/^SEARCH/)
    }
  })

  test('the inbox of the runtime and of a client list all of it', async () => {
    expect(await asking.runtime.inbox.list({ tenant: 'acme' })).toHaveLength(WAITING * 0.9)
    expect(await asking.runtime.inbox.list()).toHaveLength(WAITING)
    expect(await asking.runtime.inbox.list({ limit: 7 })).toHaveLength(7)
  })

  test('a page of long logs that are not in memory leaves turns of the event loop to others', async () => {
    const [first] = await asking.runtime.inbox.list({ tenant: 'rival', limit: 1 })
    const { threadId, interruptId } = first!
    const events = (await asked.events(threadId)).map(({ event }) => event)
    const values = Array.from({ length: 4000 }, (_, index) => valueSet(`key ${index}`, index))
    await writeThreads(
      asked,
      Array.from({ length: 10 }, (_, index) => {
        const rest = { tenant: 'long', at: 1_700_000_000_000 + index }
        const copy = copyOfWaiting({ threadId, interruptId, events }, `long${index}`, rest)
        return { ...copy, append: [...copy.append!, ...values] }
      }),
    )
    let turns = 0
    let isRead = false
    const turn = (): void => {
      turns++
      if (!isRead) setImmediate(turn)
    }
    setImmediate(turn)
    const { waiting } = await asking.runtime.inbox.page({ tenant: 'long', limit: 10 })
    isRead = true
    expect(waiting).toHaveLength(10)
    expect(turns).toBeGreaterThan(5)
  })

  test('a question that was answered is gone from the next page', async () => {
    const [item] = await asking.runtime.inbox.list({ tenant: 'rival', limit: 1 })
    await asking.runtime.inbox.deny({ ...item!, by: 'ann', reason: 'No.' })
    expect(await asking.runtime.inbox.list({ threadId: item!.threadId })).toEqual([])
  })
})
