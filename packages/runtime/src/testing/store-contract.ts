import type { TestFunctions } from '@skein/base'
import type { Commit, ThreadChange } from '../store/commit.ts'
import type { Store } from '../store/store.ts'
import { addThreads, claimed, newThread, refused, same, valueSet } from './contract.ts'
import { leaseCases } from './store-contract-leases.ts'
import { listCases } from './store-contract-lists.ts'
import { readingCases, userCases } from './store-contract-reading.ts'

/** The store that `describeStore` tests. */
export interface StoreContract {
  readonly name: string
  /** Creates a new, empty store for each test. */
  readonly open: () => Store | Promise<Store>
  /** Closes a store and opens it again, as a new process would; absent for stores that are not durable. */
  readonly reopen?: (store: Store) => Promise<Store>
  /** Moves the store's clock, which decides when leases expire, forward. Default: waits for that long. */
  readonly pass?: (ms: number) => void | Promise<void>
}

/**
 * Defines the tests that every store has to pass, for any test runner:
 *
 *     describeStore({ describe, test }, { name: 'postgres', open: () => postgresStore(url) })
 */
export function describeStore(functions: TestFunctions, contract: StoreContract): void {
  const { name, open, reopen, pass = sleep } = contract
  functions.describe(`store ${name}`, () => {
    const cases = { ...writingCases, ...readingCases, ...listCases, ...userCases }
    for (const [title, body] of Object.entries(cases))
      functions.test(title, async () => {
        const store = await open()
        await body(store)
        await store.close()
      })
    for (const [title, body] of Object.entries(leaseCases))
      functions.test(title, async () => {
        const store = await open()
        await body(store, pass)
        await store.close()
      })
    if (reopen)
      functions.test('everything is there after a restart', async () =>
        survives(await open(), reopen),
      )
  })
}

type Case = (store: Store) => Promise<void>

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

const BLOB = { hash: 'a'.repeat(64), bytes: Uint8Array.of(0, 1, 255) }

/** Creates a commit with one change to the thread `t`. */
function change(rest: Omit<ThreadChange, 'id'>, more: Partial<Commit> = {}): Commit {
  return { point: 'test', threads: [{ id: 't', ...rest }], ...more }
}

const resumeEvent = { type: 'resume_requested', at: new Date(5).toISOString() } as const

const writingCases: Readonly<Record<string, Case>> = {
  'a new thread is idle, empty and unclaimed': async (store) => {
    const thread = newThread('t', { title: 'T', tags: ['x'], owner: 'ada', clientId: 'c' })
    const { seqs } = await store.commit(change({ create: thread }))
    same([...seqs], [['t', 0]], 'the numbers')
    const fields = { lifecycle: 'idle', waiting: 0, tokens: 0, costUsd: 0, seq: 0, epoch: 0 }
    // Each store may choose its own numbers for logs and changes, so the test takes them from the head.
    const { logId, change: number } = (await store.head('t'))!
    const rest = { unpriced: 0, updatedAt: 1000, wakeAt: null, attempts: 0, lease: null, logId }
    const used = { outputTokens: 0, cachedTokens: 0 }
    const otherFields = {
      firstWords: null,
      forkedFrom: null,
      tools: [],
      grantedUntil: null,
      ...used,
    }
    const all = { id: 't', ...thread, ...fields, ...rest, ...otherFields, change: number }
    same(await store.head('t'), all, 'the head')
    same(await store.events('t'), [], 'the log')
  },
  'a resting thread that gets work is queued until a drain takes it up': async (store) => {
    const lifecycle = async (rest: Omit<ThreadChange, 'id'>) => {
      await store.commit(change(rest))
      return (await store.head('t'))?.lifecycle
    }
    const resumption = { append: [resumeEvent], wake: { by: 5 } }
    same(await lifecycle({ create: newThread('t') }), 'idle', 'a new thread')
    same(await lifecycle({ append: [resumeEvent] }), 'idle', 'without being woken')
    same(await lifecycle({ append: [valueSet(1)], wake: { by: 5 } }), 'idle', 'woken without work')
    for (const rest of ['idle', 'waiting', 'stopped', 'failed'] as const) {
      same(await lifecycle({ head: { lifecycle: rest } }), rest, 'at rest')
      same(await lifecycle(resumption), 'queued', `given work while ${rest}`)
    }
    same((await store.list({ lifecycle: 'queued' })).length, 1, 'found by its lifecycle')
    same(await lifecycle({ append: [valueSet(2)] }), 'queued', 'after an event from outside')
    same(await lifecycle({ fence: 0, append: [valueSet(3)] }), 'running', 'taken up by a drain')
    same(await lifecycle(resumption), 'running', 'given work while it runs')
    same(await lifecycle({ head: { lifecycle: 'terminated' } }), 'terminated', 'ended')
    same(await lifecycle(resumption), 'terminated', 'given work after its end')
    same(await lifecycle({ head: { lifecycle: 'queued' } }), 'queued', 'named by the writer')
    same(await lifecycle({ fence: 0, wake: { exactly: null } }), 'idle', 'parked without more')
  },
  'creating twice and changing what is not there are refused': async (store) => {
    await refused(store.commit(change({ append: [valueSet(1)] })), 'THREAD_NOT_FOUND')
    await addThreads(store, 't')
    await refused(store.commit(change({ create: newThread('t') })), 'THREAD_EXISTS')
    const twice = { id: 'u', create: newThread('u') }
    await refused(store.commit({ point: 'test', threads: [twice, twice] }), 'THREAD_EXISTS')
    same(await store.head('u'), undefined, 'the head of u')
  },
  'a client id is taken once per tenant and owner': async (store) => {
    const create = newThread('t', { clientId: 'c' })
    await store.commit(change({ create }))
    const other = (tenant: string) =>
      store.commit({ point: 'test', threads: [{ id: tenant, create: { ...create, tenant } }] })
    await refused(other('acme'), 'CLIENT_ID_TAKEN')
    await other('beta')
    same((await store.headByClientId('acme', 'c'))?.id, 't', 'the thread of acme')
    same((await store.headByClientId('beta', 'c'))?.id, 'beta', 'the thread of beta')
    same(await store.headByClientId('beta', 'd'), undefined, 'the thread without an owner')
    const own = (id: string, owner: string) =>
      store.commit({ point: 'test', threads: [{ id, create: { ...create, owner } }] })
    await own('ann', 'ann')
    await refused(own('ann-2', 'ann'), 'CLIENT_ID_TAKEN')
    await own('bob', 'bob')
    same((await store.headByClientId('acme', 'c', 'bob'))?.id, 'bob', 'the thread of bob')
    same((await store.headByClientId('acme', 'c', null))?.id, 't', 'the thread without an owner')
    same(await store.headByClientId('acme', 'c', 'eve'), undefined, 'the thread of eve')
    same((await store.headByClientId('acme', 'c'))?.id, 'ann', 'the first thread of all owners')
    await refused(
      store.commit({ point: 'test', threads: [{ id: 'bob', head: { owner: 'ann' } }] }),
      'CLIENT_ID_TAKEN',
    )
    await store.commit({ point: 'test', threads: [{ id: 'bob', head: { owner: 'eve' } }] })
    same((await store.headByClientId('acme', 'c', 'eve'))?.id, 'bob', 'the thread given to eve')
    await own('bob-2', 'bob')
    await store.remove('t')
    await store.commit(change({ create }))
  },
  'labels lose what not every database can store, and ids with it are refused': async (store) => {
    const odd = 'a\0b\ud800c'
    await store.commit(change({ create: newThread('t', { title: odd, tags: [odd, 'x'] }) }))
    const clean = 'ab\ufffdc'
    const labels = async () => {
      const { title, tags } = (await store.head('t'))!
      return [title, tags]
    }
    same(await labels(), [clean, [clean, 'x']], 'the labels of a new thread')
    await store.commit(change({ head: { title: `2${odd}`, tags: [odd] } }))
    same(await labels(), [`2${clean}`, [clean]], 'the changed labels')
    same((await store.list({ search: '2AB' })).length, 1, 'what a search finds')
    for (const query of [{ search: odd }, { tag: odd }, { tenant: odd }, { owner: odd }])
      same(await store.list(query), [], 'what a query with such a text finds')
    same(await store.headByClientId('acme', odd), undefined, 'the thread with such a client id')
    const event = valueSet('a\0b')
    await store.commit(change({ append: [event] }))
    same((await store.events('t'))[0]?.event, event, 'the event, which keeps its text')
    const wrong = [{ clientId: odd }, { tenant: odd }, { owner: odd }, { agent: odd }]
    for (const rest of wrong)
      await refused(
        store.commit({ point: 'test', threads: [{ id: 'u', create: newThread('u', rest) }] }),
        'TEXT_INVALID',
      )
    await refused(
      store.commit({ point: 'test', threads: [{ id: odd, create: newThread(odd) }] }),
      'TEXT_INVALID',
    )
    await refused(
      store.commit({ point: 'test', threads: [], spent: [{ jti: odd, exp: 1 }] }),
      'TEXT_INVALID',
    )
    same(await store.head('u'), undefined, 'the head of u')
  },
  'every log has a number of its own, also when it replaces another': async (store) => {
    const numbers = new Set<number | undefined>()
    const look = async (id: string) => numbers.add((await store.head(id))?.logId)
    await addThreads(store, 't', 'u')
    await look('t')
    await look('u')
    await store.commit(change({ append: [valueSet(1)], raisesEpoch: true }))
    await store.claim('t', { owner: 'one', leaseMs: 60_000 })
    await look('t')
    same(numbers.size, 2, 'the number of logs')
    await store.erase('t', [valueSet(1)])
    await look('t')
    for (let i = 0; i < 3; i++) {
      await store.remove('u')
      await addThreads(store, 'u')
      await look('u')
    }
    same(numbers.size, 6, 'the number of logs')
  },
  'totals follow every change': async (store) => {
    const expectTotals = async (): Promise<void> => {
      const heads = await store.list({ limit: 1000 })
      const counts = new Map<string, number>()
      for (const { lifecycle } of heads) counts.set(lifecycle, (counts.get(lifecycle) ?? 0) + 1)
      const { threads, tokens, costUsd } = await store.totals()
      const present = [...threads].filter(([, count]) => count !== 0)
      same(Object.fromEntries(present), Object.fromEntries(counts), 'the threads by lifecycle')
      same(
        tokens,
        heads.reduce((sum, head) => sum + head.tokens, 0),
        'the tokens',
      )
      const cost = heads.reduce((sum, head) => sum + head.costUsd, 0)
      same(Math.abs(cost - costUsd) < 1e-9, true, `the cost ${costUsd} to be about ${cost}`)
    }
    await expectTotals()
    await addThreads(store, 't', 'u', 'v')
    await expectTotals()
    const head = { lifecycle: 'running', tokens: 7, costUsd: 0.1 } as const
    await store.commit(change({ head }))
    await store.commit({ point: 'test', threads: [{ id: 'u', head: { ...head, costUsd: 0.2 } }] })
    await expectTotals()
    await refused(store.commit(change({ head: { lifecycle: 'failed' }, fence: 9 })), 'FENCED')
    await expectTotals()
    await store.claim('t', { owner: 'one', leaseMs: 60_000 })
    await store.commit(change({ head: { lifecycle: 'idle', tokens: 3 } }))
    await store.erase('u', [])
    await store.remove('v')
    await expectTotals()
  },
  'counters are added up; one that is not below its limit refuses the whole commit': async (
    store,
  ) => {
    const count = (...counters: NonNullable<Commit['counters']>): Promise<unknown> =>
      store.commit({ point: 'test', threads: [], counters })
    const all = async (prefix: string) => Object.fromEntries(await store.counters(prefix))
    await count({ name: 'limit a', add: 2 }, { name: 'limit a', add: 1.5, below: 3 })
    await count({ name: 'limit b', add: 1, below: 1 }, { name: 'limitless', add: 1 }).catch(
      () => {},
    )
    same(await all('limit'), { 'limit a': 3.5 }, 'the counters')
    await refused(
      count({ name: 'limit b', add: 1 }, { name: 'limit a', add: 1, below: 3.5 }),
      'LIMIT_REACHED',
    )
    await addThreads(store, 't')
    const counters = [{ name: 'limit a', add: -3 }]
    await refused(store.commit(change({ fence: 9 }, { counters })), 'FENCED')
    same(await all('limit'), { 'limit a': 3.5 }, 'the counters after commits that were refused')
    await store.commit(change({}, { counters: [...counters, { name: 'limit b 1', add: 1 }] }))
    await count({ name: 'limit \u{10000}', add: 1 })
    same(await all('limit a'), { 'limit a': 0.5 }, 'the counters with this prefix')
    await count({ name: 'limit a', add: null }, { name: 'limit b 1', add: null })
    same(await all('limit '), { 'limit \u{10000}': 1 }, 'the counters after removing two')
    same((await store.totals()).tokens, 0, 'the tokens of all threads')
    await refused(count({ name: 'tokens', add: 1 }), 'TEXT_INVALID')
    await refused(count({ name: 'limit a', add: Number.NaN }), 'TEXT_INVALID')
    // Many concurrent additions: only as many succeed as fit below the limit.
    const tries = Array.from({ length: 64 }, () => count({ name: 'limit c', add: 3, below: 20 }))
    const winners = (await Promise.allSettled(tries)).filter(({ status }) => status === 'fulfilled')
    same(winners.length, 7, 'the additions that fit')
    same(await all('limit c'), { 'limit c': 21 }, 'the counter after many concurrent additions')
  },
  'events are numbered from 1, in order, and come back as they went in': async (store) => {
    await addThreads(store, 't')
    const values = [null, 'ä\u{1F9F6}\u0000"\\', [1.5, -0.25, 1e21, { deep: [true] }], {}]
    const append = values.map((value) => valueSet(value))
    const { seqs } = await store.commit(change({ append: append.slice(0, 3) }))
    same(seqs.get('t'), 3, 'the number of the last event')
    await store.commit(change({ append: append.slice(3) }))
    const events = append.map((event, index) => ({ seq: index + 1, event }))
    same(await store.events('t'), events, 'the log')
    same(await store.events('t', { after: 2 }), events.slice(2), 'the log after 2')
    same(await store.events('t', { after: 1, limit: 2 }), events.slice(1, 3), 'a part')
    same(await store.events('t', { after: 9 }), [], 'the log after its end')
    same((await store.events('t', { limit: Infinity })).length, 4, 'the length of all')
    same((await store.head('t'))?.updatedAt, 2000, 'the time of the last event')
  },
  'what is not JSON is refused and nothing is written': async (store) => {
    await addThreads(store, 't')
    const cyclic: unknown[] = []
    cyclic.push(cyclic)
    let deep: unknown = 1
    for (let i = 0; i < 20_000; i++) deep = [deep]
    const wrong = [
      deep,
      undefined,
      1n,
      Number.NaN,
      new Map(),
      new Date(0),
      () => 1,
      Uint8Array.of(1),
      cyclic,
    ]
    for (const value of wrong) {
      const append = [valueSet('fine'), valueSet({ inside: [value] })]
      await refused(store.commit(change({ append, head: { title: 'no' } })), 'NOT_JSON')
    }
    same([(await store.head('t'))?.title, await store.events('t')], [null, []], 'the thread')
  },
  'what is stored does not change with the objects it came from or went to': async (store) => {
    const value = { list: [1] }
    const tags = ['a']
    const bytes = Uint8Array.of(1, 2)
    const threads = [{ id: 't', create: newThread('t', { tags }), append: [valueSet(value)] }]
    await store.commit({ point: 'test', threads, blobs: [{ hash: BLOB.hash, bytes }] })
    value.list.push(2)
    tags.push('b')
    bytes.fill(9)
    const spoil = async () => {
      const [event] = await store.events('t')
      ;(event as unknown as { event: { value: typeof value } }).event.value.list.push(3)
    }
    await spoil().catch(() => 'it may be frozen')
    ;(await store.blob(BLOB.hash))?.fill(8)
    same((await store.events('t'))[0]?.event, valueSet({ list: [1] }), 'the event')
    same((await store.head('t'))?.tags, ['a'], 'the tags')
    same([...((await store.blob(BLOB.hash)) ?? [])], [1, 2], 'the blob')
  },
  'a claim raises the epoch, counts no strike, and fences off the owner before': async (store) => {
    same(await store.claim('t', { owner: 'one', leaseMs: 9 }), undefined, 'the claim of no thread')
    await addThreads(store, 't')
    await claimed(store, 't')
    const claim = await claimed(store, 't')
    same([claim.epoch, claim.head.epoch, claim.head.attempts], [2, 2, 0], 'the claim')
    const append = [valueSet(1)]
    await refused(store.commit(change({ fence: 1, append })), 'FENCED')
    await refused(store.commit(change({ fence: 3, append })), 'FENCED')
    await store.commit(change({ fence: 2, append, raisesEpoch: true, head: { attempts: 7 } }))
    await refused(store.commit(change({ fence: 2, append })), 'FENCED')
    const { epoch, attempts, seq } = (await store.head('t')) ?? {}
    same([epoch, attempts, seq], [3, 7, 1], 'epoch, attempts and number')
  },
  'a writer that has not seen the last event is refused': async (store) => {
    await addThreads(store, 't')
    await store.commit(change({ expectSeq: 0, append: [valueSet(1)] }))
    await refused(store.commit(change({ expectSeq: 0, wake: { exactly: null } })), 'LOG_MOVED')
    await refused(store.commit(change({ expectSeq: 2, append: [valueSet(2)] })), 'LOG_MOVED')
    await store.commit(change({ expectSeq: 1, append: [valueSet(2)] }))
  },
  'of writers that expect the same event one wins, and commits to one thread keep their order':
    async (store) => {
      await addThreads(store, 't', 'u')
      const race = Array.from({ length: 8 }, (_, index) =>
        store.commit(change({ expectSeq: 0, append: [valueSet(index)] })),
      )
      const mail = Array.from({ length: 20 }, (_, index) =>
        store.commit({ point: 'test', threads: [{ id: 'u', append: [valueSet(index)] }] }),
      )
      const won = (await Promise.allSettled(race)).filter(({ status }) => status === 'fulfilled')
      same(won.length, 1, 'the number of winners')
      const numbers = (await Promise.all(mail)).map(({ seqs }) => seqs.get('u'))
      same(
        numbers,
        Array.from({ length: 20 }, (_, index) => index + 1),
        'the numbers',
      )
      const values = (await store.events('u')).map(({ event }) => 'value' in event && event.value)
      same(
        values,
        Array.from({ length: 20 }, (_, index) => index),
        'the log of u',
      )
    },
  'a thread that is over is refused to those who need it live': async (store) => {
    for (const [index, lifecycle] of (['terminated', 'erased', 'failed'] as const).entries()) {
      const id = `t${index}`
      await addThreads(store, id)
      await store.commit({ point: 'test', threads: [{ id, head: { lifecycle } }] })
      const threads = [{ id, mustBeLive: true, append: [valueSet(1)] }]
      const mail = store.commit({ point: 'test', threads })
      if (lifecycle === 'failed') await mail
      else await refused(mail, 'THREAD_TERMINATED')
      await store.commit({ point: 'test', threads: [{ id, append: [valueSet(1)] }] })
    }
  },
  'a refused commit leaves no trace, whatever else is in it': async (store) => {
    await addThreads(store, 't', 'u')
    const usedTokens = [{ jti: 'j', exp: 9 }]
    const audit = [{ tree: 't', requestId: 'r', seq: 0, line: 'one' }]
    await store.commit({ point: 'test', threads: [], spent: usedTokens, audit })
    const good: Commit = {
      point: 'test',
      threads: [
        { id: 'new', create: newThread('new', { clientId: 'c' }), wake: { by: 1 } },
        { id: 't', append: [valueSet(1)], head: { title: 'no' }, raisesEpoch: true },
      ],
      blobs: [BLOB],
      audit: [{ tree: 't', requestId: 'r', seq: 1, line: 'two' }],
      spent: [{ jti: 'k', exp: 9 }],
    }
    const last = (rest: Omit<ThreadChange, 'id'>) => ({
      ...good,
      threads: [...good.threads, { id: 'u', ...rest }],
    })
    await refused(store.commit(last({ fence: 7 })), 'FENCED')
    await refused(store.commit(last({ expectSeq: 7 })), 'LOG_MOVED')
    await refused(store.commit(last({ append: [valueSet(1n)] })), 'NOT_JSON')
    await refused(
      store.commit({ ...good, spent: [...(good.spent ?? []), ...usedTokens] }),
      'TOKEN_SPENT',
    )
    await refused(
      store.commit({ ...good, audit: [...(good.audit ?? []), ...audit] }),
      'STATE_CONFLICT',
    )
    const { title, seq, epoch } = (await store.head('t')) ?? {}
    same([title, seq, epoch], [null, 0, 0], 'the head')
    same(await store.head('new'), undefined, 'the new thread')
    same(await store.blob(BLOB.hash), undefined, 'the blob')
    same(await store.nextWake(), undefined, 'the next wake')
    await store.commit(good)
    same((await store.audit('t')).length, 2, 'the length of the audit log')
  },
  'a refused commit does not fail those that came with it': async (store) => {
    await addThreads(store, 't', 'u')
    const outcomes = await Promise.allSettled([
      store.commit(change({ append: [valueSet(1)] })),
      store.commit(change({ fence: 9, append: [valueSet(2)] })),
      store.commit({ point: 'test', threads: [{ id: 'u', append: [valueSet(3)] }] }),
      claimed(store, 't'),
    ])
    same(
      outcomes.map(({ status }) => status),
      ['fulfilled', 'rejected', 'fulfilled', 'fulfilled'],
      'the outcomes',
    )
    same((await store.events('t')).length, 1, 'the length of the log of t')
    same((await store.events('u')).length, 1, 'the length of the log of u')
  },
  'wake by keeps the earlier time, wake exactly replaces it': async (store) => {
    await addThreads(store, 't')
    const wakeAt = async (wake: NonNullable<ThreadChange['wake']>) => {
      await store.commit(change({ wake }))
      return (await store.head('t'))?.wakeAt
    }
    same(await wakeAt({ by: 50 }), 50, 'the first time')
    same(await wakeAt({ by: 70 }), 50, 'after a later one')
    same(await wakeAt({ by: 30 }), 30, 'after an earlier one')
    same(await wakeAt({ exactly: 90 }), 90, 'after an exact one')
    same(await wakeAt({ exactly: null }), null, 'after none')
    same(await wakeAt({ by: 0 }), 0, 'after zero')
  },
  'audit lines are numbered within their tree; a place is taken once': async (store) => {
    const line = (tree: string, requestId: string, seq: number) => ({
      tree,
      requestId,
      seq,
      line: `${tree} ${requestId} ${seq}`,
    })
    const write = (...audit: ReturnType<typeof line>[]) =>
      store.commit({ point: 'test', threads: [], audit })
    same((await write(line('a', 'r', 0), line('a', 'r', 1))).auditFrom, 0, 'the first index')
    same((await write(line('b', 's', 0))).auditFrom, 0, 'the first index of another tree')
    same((await write(line('a', 'q', 0), line('a', 'r', 2))).auditFrom, 2, 'the next index')
    await refused(write(line('a', 'r', 2)), 'STATE_CONFLICT')
    await refused(write(line('a', 'z', 0), line('a', 'z', 0)), 'STATE_CONFLICT')
    const auditLines = ['a r 0', 'a r 1', 'a q 0', 'a r 2'].map((text, index) => ({
      index,
      line: text,
    }))
    same(await store.audit('a'), auditLines, 'the log')
    same(await store.audit('a', { from: 2 }), auditLines.slice(2), 'its end')
    same(await store.audit('a', { requestId: 'q' }), auditLines.slice(2, 3), 'one request')
    same(await store.audit('c'), [], 'the log of no tree')
  },
  'a token is spent once': async (store) => {
    const spend = (...ids: string[]) =>
      store.commit({ point: 'test', threads: [], spent: ids.map((jti) => ({ jti, exp: 1 })) })
    await spend('a', 'b')
    await refused(spend('c', 'a'), 'TOKEN_SPENT')
    await refused(spend('d', 'd'), 'TOKEN_SPENT')
    await spend('c', 'd')
  },
  'a closed store says so': async (store) => {
    await addThreads(store, 't')
    await store.close()
    await store.close()
    await refused(store.commit(change({})), 'STORE_CLOSED')
    await refused(store.claim('t', { owner: 'one', leaseMs: 9 }), 'STORE_CLOSED')
    await refused(store.renew(['t'], { owner: 'one', leaseMs: 9 }), 'STORE_CLOSED')
    await refused(store.release('one'), 'STORE_CLOSED')
    await refused(store.head('t'), 'STORE_CLOSED')
    await refused(store.due(1, 1), 'STORE_CLOSED')
  },
}

async function survives(store: Store, reopen: (store: Store) => Promise<Store>): Promise<void> {
  const create = newThread('t', { title: 'T', clientId: 'c' })
  await store.commit(
    change(
      { create, append: [valueSet(BLOB.hash)], wake: { by: 5 } },
      {
        blobs: [BLOB],
        audit: [{ tree: 't', requestId: 'r', seq: 0, line: 'one' }],
        spent: [{ jti: 'j', exp: 9 }],
        counters: [{ name: 'limit x', add: 7 }],
        userValues: [{ tenant: 'acme', user: 'ada', key: 'k', value: [1], at: 'now' }],
      },
    ),
  )
  await claimed(store, 't')
  await store.release('one')
  await store.setSetting('key', { a: 1 })
  const everything = async (from: Store) => [
    await from.head('t'),
    await from.headByClientId('acme', 'c'),
    await from.events('t'),
    [...((await from.blob(BLOB.hash)) ?? [])],
    await from.audit('t'),
    await from.due(5, 10),
    await from.setting('key'),
    [...(await from.totals()).threads],
    [...(await from.counters('limit '))],
    await from.userValues({ tenant: 'acme', user: 'ada' }),
  ]
  const before = await everything(store)
  const again = await reopen(store)
  same(await everything(again), before, 'the reopened store')
  await refused(
    again.commit({ point: 'test', threads: [], spent: [{ jti: 'j', exp: 9 }] }),
    'TOKEN_SPENT',
  )
  const set = { tenant: 'acme', user: 'ada', key: 'k', value: 2, at: 'later' }
  const [{ version = 0 } = {}] = await again.userValues(set)
  await again.commit({ point: 'test', threads: [], userValues: [set] })
  const [next] = await again.userValues(set)
  same((next?.version ?? 0) > version, true, 'a later version after a restart')
  await again.close()
}
