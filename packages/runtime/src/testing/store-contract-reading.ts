import type { RuntimeEvent } from '../contract/event.ts'
import { MAX_USER_VALUES, type UserOf } from '../store/user-value.ts'
import type { NewThread } from '../store/commit.ts'
import { removalsOf, type Store } from '../store/store.ts'
import type { ThreadHead } from '../store/head.ts'
import type { ThreadQuery } from '../store/thread-query.ts'
import { claimed, addThreads, newThread, refused, same, valueSet } from './contract.ts'

type Case = (store: Store) => Promise<void>

/** The tests of lists, times, sums, erasing and removing. */
export const readingCases: Readonly<Record<string, Case>> = {
  'lists are filtered, sorted and cut': async (store) => {
    await library(store)
    const ask = async (query: ThreadQuery) => (await store.list(query)).map(({ id }) => id).join()
    same(await ask({}), 'd,a,c,b', 'all, the latest activity first')
    same(await ask({ sort: 'created' }), 'd,c,b,a', 'all, the newest first')
    same(await ask({ sort: 'oldest' }), 'a,b,c,d', 'all, the oldest first')
    same(await ask({ tenant: 'beta' }), 'd', 'by tenant')
    same(await ask({ owner: 'ada' }), 'a', 'by owner')
    same(await ask({ agent: 'writer' }), 'c,b', 'by agent')
    same(await ask({ lifecycle: 'waiting' }), 'b', 'by lifecycle')
    same(await ask({ parentId: 'a' }), 'c,b', 'by parent')
    same(await ask({ parentId: null }), 'd,a', 'without parent')
    same(await ask({ rootId: 'a' }), 'a,c,b', 'by root')
    same(await ask({ isWaiting: true }), 'b', 'waiting for a person')
    same(await ask({ isWaiting: false }), 'd,a,c', 'not waiting')
    same(await ask({ search: 'ÄRGER' }), 'a', 'a word of the title')
    same(await ask({ search: '50%' }), 'c', 'no wildcards')
    same(await ask({ search: 'client-d' }), 'd', 'the id of the client')
    same(await ask({ tag: 'red' }), 'a', 'by tag')
    same(await ask({ tag: 're' }), '', 'by a part of a tag')
    same(await ask({ rootId: 'a', agent: 'writer', limit: 1, offset: 1 }), 'b', 'all together')
    same(await ask({ limit: 0 }), '', 'none')
    same(await ask({ limit: 3, offset: 3 }), 'b', 'a page')
  },
  'a list has 50 threads unless asked for more, and never more than 1000': async (store) => {
    const ids = Array.from({ length: 1010 }, (_, index) => `t${index}`)
    await addThreads(store, ...ids)
    same((await store.list({})).length, 50, 'the default')
    same((await store.list({ limit: 5000 })).length, 1000, 'the most')
  },
  'the longest waiting thread is due first': async (store) => {
    await addThreads(store, 'a', 'b', 'c', 'd')
    same([await store.due(1e15, 9), await store.nextWake()], [[], undefined], 'nothing')
    const times: [string, number][] = [
      ['a', 30],
      ['b', 10],
      ['c', 20],
    ]
    for (const [id, by] of times)
      await store.commit({ point: 'test', threads: [{ id, wake: { by } }] })
    same(await store.due(9, 9), [], 'before')
    same(await store.due(20, 9), ['b', 'c'], 'at 20')
    same(await store.due(99, 2), ['b', 'c'], 'the first two')
    same((await store.due(99, Infinity)).length, 3, 'the number of all')
    same(await store.nextWake(), 10, 'the earliest')
    same([await store.nextWake(10), await store.nextWake(15)], [20, 20], 'the earliest after')
    same(await store.nextWake(30), undefined, 'after all')
  },
  'a snapshot belongs to one log and goes with it': async (store) => {
    const { snapshots } = store
    if (!snapshots) return // a store need not have them
    await addThreads(store, 'a', 'b', 'c')
    const logOf = async (id: string): Promise<number> => (await store.head(id))!.logId
    const [a, b, c] = [await logOf('a'), await logOf('b'), await logOf('c')]
    const read = async (id: string, logId: number): Promise<unknown> =>
      [...(await snapshots.read(id, logId))]
        .map(([place, bytes]) => [place, ...bytes])
        .toSorted((one, other) => one[0]! - other[0]!)
    const parts = (...list: readonly (readonly [number, number])[]) =>
      new Map(list.map(([place, byte]) => [place, Uint8Array.of(byte, 0, 255)]))
    same(await read('a', a), [], 'no snapshot')
    await snapshots.save('a', a, parts([0, 1], [1, 2], [2, 3]))
    await snapshots.save('b', b, parts([0, 7]))
    await snapshots.save('c', c, parts([0, 8]))
    await snapshots.save('a', a, parts([0, 4], [2, 5], [3, 6]))
    const whole = [
      [0, 4, 0, 255],
      [1, 2, 0, 255],
      [2, 5, 0, 255],
      [3, 6, 0, 255],
    ]
    same(await read('a', a), whole, 'the parts that were written last')
    same(await read('a', a + 1000), [], 'another log of the thread')
    await snapshots.save('a', a + 1000, parts([0, 9]))
    await snapshots.save('nobody', a, parts([0, 9]))
    same(await read('a', a), whole, 'nothing is written for a log that the thread does not have')
    await store.erase('a', [valueSet('erased')])
    await store.remove('b')
    same([await read('a', a), await read('b', b)], [[], []], 'erased, removed')
    same(await read('a', await logOf('a')), [], 'the new log')
    await snapshots.save('a', a, parts([0, 9]))
    await snapshots.save('b', b, parts([0, 9]))
    same([await read('a', a), await read('b', b)], [[], []], 'written too late')
    same(await read('c', c), [[0, 8, 0, 255]], 'another thread')
  },
  'usage is summed over a tree': async (store) => {
    await library(store)
    const heads = { a: [10, 0.5], b: [20, 0.25], d: [1000, 8] } as const
    for (const [id, [tokens, costUsd]] of Object.entries(heads))
      await store.commit({ point: 'test', threads: [{ id, head: { tokens, costUsd } }] })
    await store.commit({ point: 'test', threads: [{ id: 'b', head: { unpriced: 2 } }] })
    const sum = { tokens: 30, costUsd: 0.75, unpriced: 2, waiting: 1 }
    same(await store.treeUsage('a'), sum, 'the tree of a')
    const none = { tokens: 0, costUsd: 0, unpriced: 0, waiting: 0 }
    same(await store.treeUsage('nobody'), none, 'no tree')
  },
  'a patch sets what it names and nothing else': async (store) => {
    await library(store)
    const headOf = async () => ({ ...(await store.head('a')), change: 0 }) as ThreadHead
    const before = await headOf()
    // A program without types might pass columns that writers may not set, or a column with the value undefined.
    const wrong = { seq: 99, epoch: 99, id: 'x', wakeAt: 1, title: undefined } as object
    await store.commit({ point: 'test', threads: [{ id: 'a', head: { ...wrong, owner: null } }] })
    same(await headOf(), { ...before, owner: null }, 'the head')
    const all = { agent: 'z', title: 'Z', tags: ['z'], owner: 'z', lifecycle: 'failed' } as const
    const usage = { tokens: 3, outputTokens: 2, cachedTokens: 1, costUsd: 0.5, unpriced: 1 }
    const numbers = { waiting: 2, ...usage, attempts: 4 }
    await store.commit({ point: 'test', threads: [{ id: 'a', head: { ...all, ...numbers } }] })
    same(await headOf(), { ...before, ...all, ...numbers }, 'all of it')
    same((await store.list({ search: 'z' })).length, 1, 'found by its new title')
    await store.commit({ point: 'test', threads: [{ id: 'a', head: { tags: ['only', 'tags'] } }] })
    same((await store.head('a'))?.tags, ['only', 'tags'], 'the tags')
  },
  'each change of a thread moves it to the end of the changes; claims do not': async (store) => {
    await addThreads(store, 'a', 'b')
    await addThreads(store, 'c')
    const other = { id: 'd', create: newThread('d', { tenant: 'beta' }) }
    await store.commit({ point: 'test', threads: [other] })
    const heads = (changedAfter: ThreadQuery['changedAfter'] = { change: 0, id: '' }) =>
      store.list({ tenant: 'acme', changedAfter })
    const ids = async (...after: Parameters<typeof heads>) =>
      (await heads(...after)).map(({ id }) => id).join()
    same(await ids(), 'a,b,c', 'the earliest change first')
    const [, second, last] = await heads()
    same([await ids(second), await ids(last)], ['c', ''], 'after a place')
    await claimed(store, 'a')
    await store.renew(['a'], { owner: 'one', leaseMs: 10 })
    await store.release('one')
    same(await ids(last), '', 'after claims')
    await store.commit({ point: 'test', threads: [{ id: 'a', head: { waiting: 1 } }] })
    same([await ids(last), await ids()], ['a', 'b,c,a'], 'after a commit without events')
    await store.erase('b', [])
    same(await ids(last), 'a,b', 'after an erasure')
    const latest = await store.list({ tenant: 'acme', sort: 'change', limit: 2 })
    same(latest.map(({ id }) => id).join(), 'b,a', 'the latest change first')
    const page = await store.list({ tenant: 'acme', changedAfter: second, limit: 1 })
    same(page[0]?.id, 'c', 'a page')
    const before = (await heads()).at(-1)
    await store.remove('b')
    same(
      (await store.counters(removalsOf('acme'))).get(removalsOf('acme')),
      2,
      'the removals, one of them by an erasure',
    )
    same((await store.counters(removalsOf('beta'))).size, 0, 'the removals of another tenant')
    await addThreads(store, 'e')
    same(await ids(before), 'e', 'a number is not given again after its thread was removed')
  },
  'a head has the first words of its thread, safe to show': async (store) => {
    const messageAdded = (text: string, rest: object = {}): RuntimeEvent => ({
      type: 'message_queued',
      at: new Date(0).toISOString(),
      queueId: 'q',
      role: 'user',
      message: { id: 'm', type: 'user', timestamp: '', content: [{ type: 'text', text }] },
      ...rest,
    })
    const words = async (id: string, ...events: RuntimeEvent[]) => {
      const create = newThread(id)
      await store.commit({ point: 'test', threads: [{ id, create, append: events }] })
      return (await store.head(id))?.firstWords
    }
    same(
      await words('a', messageAdded('  Where\nis  my order? ')),
      'Where is my order?',
      'one line',
    )
    same(
      await words('b', messageAdded('x'.repeat(5000))),
      `${'x'.repeat(119)}…`,
      'what is too long',
    )
    same(await words('c', messageAdded('a\u202eb\u001b[2J')), 'a\\u{202e}b\\u{1b}[2J', 'what hides')
    same(await words('d', messageAdded('hush', { isSilent: true })), null, 'what is silent')
    same(
      await words('e', valueSet(1), messageAdded(' '), messageAdded('Then.')),
      'Then.',
      'after nothing',
    )
    const later = { id: 'd', append: [messageAdded('First.'), messageAdded('Second.')] }
    await store.commit({ point: 'test', threads: [later] })
    await store.commit({ point: 'test', threads: [{ id: 'd', append: [messageAdded('Third.')] }] })
    same((await store.head('d'))?.firstWords, 'First.', 'only the first')
    same(
      (await store.list({ search: 'FIRST' })).map(({ id }) => id),
      ['d'],
      'found by them',
    )
    await store.erase('d', [])
    same((await store.head('d'))?.firstWords, null, 'after an erasure')
    same((await store.list({ search: 'first' })).length, 0, 'found after an erasure')
  },
  'threads are found by the tools that they, or threads below them, have called': async (store) => {
    const says = (...names: string[]): RuntimeEvent => ({
      type: 'message_added',
      at: new Date(0).toISOString(),
      turnId: 't',
      side: 'a',
      message: {
        id: 'm',
        type: 'assistant',
        timestamp: '',
        content: [],
        toolCalls: names.map((toolName, at) => ({ toolCallId: `c${at}`, toolName, arguments: {} })),
      } as Extract<RuntimeEvent, { type: 'message_added' }>['message'],
    })
    const add = (id: string, rest: Partial<NewThread>, ...append: RuntimeEvent[]) =>
      store.commit({ point: 'test', threads: [{ id, create: newThread(id, rest), append }] })
    const idsOf = async (tool: string, query: ThreadQuery = {}) =>
      (await store.list({ tool, sort: 'oldest', ...query })).map(({ id }) => id).sort()
    await add('a', {}, says('refund', 'look'), says('refund'))
    await add('b', {})
    await add('b1', { parentId: 'b', rootId: 'b' })
    await add('b2', { parentId: 'b1', rootId: 'b' }, says('refund'))
    await add('c', { tenant: 'beta' }, says('Refund', 'look'))
    same((await store.head('a'))?.tools, ['refund', 'look'], 'the tools of a head, each once')
    same(await idsOf('refund'), ['a', 'b', 'b2'], 'the threads and their roots')
    same(await idsOf('refund', { parentId: null }), ['a', 'b'], 'the roots')
    same(await idsOf('look', { tenant: 'beta' }), ['c'], 'those of a tenant')
    same(await idsOf('refund', { tenant: 'beta' }), [], 'names are compared exactly')
    await store.commit({ point: 'test', threads: [{ id: 'b', append: [says('pay')] }] })
    same(await idsOf('pay'), ['b'], 'a later call')
    same(await idsOf('none'), [], 'a tool that was never called')
    same(await idsOf('a\0b'), [], 'a name that not every store can hold')
    await store.erase('a', [])
    same(await idsOf('refund'), ['b', 'b2'], 'after an erasure')
    await store.remove('b2')
    same(await idsOf('refund'), [], 'after a removal')
  },
  'threads are found by the end of their standing grants': async (store) => {
    const grantMade = (grantId: string, end: number): RuntimeEvent => ({
      type: 'grant_made',
      at: new Date(0).toISOString(),
      grantId,
      tool: 'refund',
      risk: 'write_low_risk',
      by: 'ada',
      expiresAt: new Date(end).toISOString(),
      grant: { token: 'signed' } as never, // stores do not look into it
    })
    await addThreads(store, 'a', 'b', 'c')
    const commit = (id: string, ...append: RuntimeEvent[]) =>
      store.commit({ point: 'test', threads: [{ id, append }] })
    const idsOf = async (grantedAfter: number) =>
      (await store.list({ grantedAfter })).map(({ id }) => id).sort()
    await commit('a', grantMade('1', 5000), grantMade('2', 3000))
    await commit('b', grantMade('3', 4000))
    same((await store.head('a'))?.grantedUntil, 5000, 'the last end')
    same((await store.head('c'))?.grantedUntil, null, 'of a thread without a grant')
    same(await idsOf(3500), ['a', 'b'], 'after a time')
    same(await idsOf(4000), ['a'], 'exactly at an end')
    same(await idsOf(5000), [], 'after all of them')
    await store.erase('a', [])
    same(await idsOf(0), ['b'], 'after an erasure')
  },
  'a fork names the thread and the message that it comes from': async (store) => {
    const threadCreated = (threadId: string, from?: object) =>
      ({
        type: 'thread_created',
        at: new Date(0).toISOString(),
        threadId,
        agent: 'helper',
        version: 2,
        depth: 0,
        metadata: from && { forked_from: from },
      }) as RuntimeEvent
    for (const [id, from] of [
      ['a', undefined],
      ['b', { thread_id: 'a', message_id: 'm' }],
      ['c', { thread_id: 'a' }],
      ['d', { thread_id: 7 }],
    ] as const)
      await store.commit({
        point: 'test',
        threads: [{ id, create: newThread(id), append: [threadCreated(id, from)] }],
      })
    const forks = await store.list({ forkedFrom: 'a', sort: 'oldest' })
    const from = forks.map(({ id, forkedFrom }) => [
      id,
      forkedFrom?.threadId,
      forkedFrom?.messageId,
    ])
    same(
      from,
      [
        ['b', 'a', 'm'],
        ['c', 'a', null],
      ],
      'the forks',
    )
    same(
      [(await store.head('a'))?.forkedFrom, (await store.head('d'))?.forkedFrom],
      [null, null],
      'others',
    )
    await store.erase('b', [])
    same((await store.head('b'))?.forkedFrom?.threadId, 'a', 'after an erasure')
  },
  'a blob is kept once and as it is': async (store) => {
    const bytes = Uint8Array.from({ length: 300_000 }, (_, index) => index % 251)
    const hash = 'b'.repeat(64)
    const write = (content: Uint8Array) =>
      store.commit({ point: 'test', threads: [], blobs: [{ hash, bytes: content }] })
    await write(bytes)
    await write(Uint8Array.of(1))
    const back = await store.blob(hash)
    same(back?.length === bytes.length && back.every((byte, i) => byte === bytes[i]), true, 'bytes')
    await store.commit({
      point: 'test',
      threads: [],
      blobs: [{ hash: 'e', bytes: new Uint8Array() }],
    })
    same((await store.blob('e'))?.length, 0, 'the length of an empty blob')
    same(await store.blob('nobody'), undefined, 'no blob')
  },
  'an erased thread keeps its skeleton, its agent and its costs': async (store) => {
    await library(store)
    await store.commit({
      point: 'test',
      threads: [{ id: 'a', append: [valueSet('private')], head: { tokens: 5 }, wake: { by: 1 } }],
    })
    const before = await claimed(store, 'a')
    await store.erase('a', [valueSet('gone', 9_000_000)])
    same(await store.events('a'), [{ seq: 1, event: valueSet('gone', 9_000_000) }], 'the log')
    const head = await store.head('a')
    const remaining = [head?.owner, head?.tokens, head?.agent, head?.createdAt, head?.updatedAt]
    same(remaining, [null, 5, 'planner', 1, 9_000_000], 'what is kept')
    const erasedFields = [
      head?.title,
      head?.tags,
      head?.lifecycle,
      head?.wakeAt,
      head?.waiting,
      head?.seq,
    ]
    same(erasedFields, [null, [], 'erased', null, 0, 1], 'what is gone')
    same((await store.list({ search: 'ärger' })).length, 0, 'found by its old title')
    const late = { id: 'a', fence: before.epoch ?? 0, append: [valueSet('private')] }
    await refused(store.commit({ point: 'test', threads: [late] }), 'FENCED')
    await refused(store.erase('nobody', []), 'THREAD_NOT_FOUND')
  },
  'blobs go with the last thread that names them': async (store) => {
    await addThreads(store, 'a', 'b')
    const [own, shared, evidence, free] = ['0', '1', '2', '3'].map((digit) => digit.repeat(64))
    if (!own || !shared || !evidence || !free) return
    const bytes = Uint8Array.of(7)
    await store.commit({
      point: 'test',
      threads: [
        { id: 'a', append: [valueSet(own), valueSet([shared])] },
        { id: 'b', append: [valueSet({ uri: `sha256:${shared}` })] },
      ],
      blobs: [own, shared, evidence].map((hash) => ({ hash, bytes })),
    })
    await store.commit({ point: 'test', threads: [], blobs: [{ hash: free, bytes }] })
    const contents = async () => {
      const all = await Promise.all([own, shared, evidence, free].map((hash) => store.blob(hash)))
      return all.map((blob) => (blob ? 1 : 0)).join('')
    }
    same(await contents(), '1111', 'the blobs before')
    await store.erase('a', [])
    same(await contents(), '0101', 'the blobs after erasing a')
    await store.remove('b')
    same(await contents(), '0001', 'the blobs after removing b')
  },
  'a skeleton keeps the blobs it names': async (store) => {
    const hash = 'c'.repeat(64)
    const blobs = [{ hash, bytes: Uint8Array.of(1) }]
    const threads = [{ id: 'a', create: newThread('a'), append: [valueSet(hash)] }]
    await store.commit({ point: 'test', threads, blobs })
    await store.erase('a', [valueSet(hash)])
    same((await store.blob(hash))?.length, 1, 'the blob after erasing')
    await store.remove('a')
    same(await store.blob(hash), undefined, 'the blob after removing')
  },
  'a removed thread is gone with its log and its audit log; others stay': async (store) => {
    await library(store)
    const lines = ['a', 'd'].map((tree) => ({ tree, requestId: tree, seq: 0, line: tree }))
    await store.commit({
      point: 'test',
      threads: [{ id: 'a', append: [valueSet(1)], wake: { by: 1 } }],
      audit: lines,
    })
    await store.remove('a')
    await store.remove('nobody')
    same(await store.head('a'), undefined, 'the head')
    same([await store.events('a'), await store.audit('a')], [[], []], 'the logs')
    same([await store.nextWake(), (await store.list({})).length], [undefined, 3], 'the rest')
    same((await store.audit('d')).length, 1, 'the audit log of d')
    await addThreads(store, 'a')
    same(await store.events('a'), [], 'the log of a thread with the same id')
    const again = await store.commit({ point: 'test', threads: [], audit: lines.slice(0, 1) })
    same(again.auditFrom, 0, 'the first index of its new audit log')
  },
  'settings are kept by name': async (store) => {
    same(await store.setting('key'), undefined, 'an unknown setting')
    await store.setSetting('key', { a: [1, null] })
    await store.setSetting('key', { b: 'ü' })
    same(await store.setting('key'), { b: 'ü' }, 'the setting')
    await refused(store.setSetting('key', { no: undefined as never, x: 1n as never }), 'NOT_JSON')
    same(await store.setting('key'), { b: 'ü' }, 'the setting after a refusal')
  },
}

/** Creates four threads: `a` with the children `b` and `c`, and `d` of another tenant. */
async function library(store: Store): Promise<void> {
  const threads: Readonly<Record<string, Partial<NewThread>>> = {
    a: { owner: 'ada', agent: 'planner', title: 'Der Ärger', tags: ['red', 'blue'] },
    b: { parentId: 'a', rootId: 'a', agent: 'writer', title: '500' },
    c: { parentId: 'a', rootId: 'a', agent: 'writer', title: '50% off' },
    d: { tenant: 'beta', clientId: 'client-d' },
  }
  await store.commit({
    point: 'test',
    threads: Object.entries(threads).map(([id, rest], index) => ({
      id,
      create: newThread(id, { ...rest, createdAt: index + 1 }),
    })),
  })
  const wait = { lifecycle: 'waiting', waiting: 1 } as const
  await store.commit({ point: 'test', threads: [{ id: 'b', head: wait }] })
  for (const [id, time] of [['a', 50] as const, ['d', 60] as const])
    await store.commit({ point: 'test', threads: [{ id, append: [valueSet(1, time)] }] })
}

const ADA: UserOf = { tenant: 'acme', user: 'ada' }

/** Sets a value of a user, or removes it (null). */
async function setFor(
  store: Store,
  of: UserOf,
  key: string,
  value: unknown,
  expectVersion?: number | null,
): Promise<void> {
  const change = { ...of, key, value: value as string, at: '2026-01-01T00:00:00.000Z' }
  await store.commit({
    point: 'test',
    threads: [],
    userValues: [{ ...change, expectVersion }],
  })
}

async function valuesOf(store: Store, of: UserOf, prefix?: string): Promise<object> {
  const values = await store.userValues(of, prefix)
  return Object.fromEntries(values.map(({ key, value }) => [key, value]))
}

async function versionOf(store: Store, of: UserOf, key: string): Promise<number> {
  return (await store.userValues(of, key)).find((one) => one.key === key)?.version ?? 0
}

/** The tests of values that belong to a user. */
export const userCases: Readonly<Record<string, Case>> = {
  'a value of a user is set, replaced, listed by key and removed': async (store) => {
    same(await store.userValues(ADA), [], 'the values of a user without any')
    await setFor(store, ADA, 'b', { deep: [1, null] })
    await setFor(store, ADA, 'a%', 'x')
    await setFor(store, ADA, 'a_', 1)
    same(await valuesOf(store, ADA), { 'a%': 'x', a_: 1, b: { deep: [1, null] } }, 'all')
    same(await valuesOf(store, ADA, 'a_'), { a_: 1 }, 'by prefix, without wildcards')
    const [first] = await store.userValues(ADA, 'b')
    same(first?.updatedAt, '2026-01-01T00:00:00.000Z', 'the time of the write')
    await setFor(store, ADA, 'b', 2)
    same(await valuesOf(store, ADA, 'b'), { b: 2 }, 'the new value')
    await setFor(store, ADA, 'b', null)
    await setFor(store, ADA, 'never', null)
    same(await valuesOf(store, ADA), { 'a%': 'x', a_: 1 }, 'what is left')
  },
  'values of users are apart by tenant and by user': async (store) => {
    const others: UserOf[] = [
      { tenant: 'acme', user: 'bob' },
      { tenant: 'beta', user: 'ada' },
      { tenant: 'acm', user: 'eada' },
      { tenant: 'ACME', user: 'ada' },
    ]
    await setFor(store, ADA, 'k', 'of ada')
    for (const other of others) {
      same(await valuesOf(store, other), {}, 'the values of a stranger')
      await setFor(store, other, 'k', other.user)
    }
    same(await valuesOf(store, ADA), { k: 'of ada' }, 'the values of ada')
    same(await store.eraseUserValues(others[0]!), 1, 'the erased')
    same(await valuesOf(store, ADA), { k: 'of ada' }, 'the values after a stranger was erased')
    same(await valuesOf(store, others[1]!), { k: 'ada' }, 'those of the other tenant')
  },
  'a value of a user that moved refuses the whole commit': async (store) => {
    await addThreads(store, 't')
    await setFor(store, ADA, 'k', 1, null)
    await refused(setFor(store, ADA, 'k', 2, null), 'VALUE_MOVED')
    const version = await versionOf(store, ADA, 'k')
    await setFor(store, ADA, 'k', 2, version)
    const stale = { ...ADA, key: 'k', value: 3, at: 'now', expectVersion: version }
    const other = { ...ADA, key: 'other', value: 1, at: 'now' }
    await refused(
      store.commit({
        point: 'test',
        threads: [{ id: 't', append: [valueSet(1)] }],
        userValues: [other, stale],
      }),
      'VALUE_MOVED',
    )
    same(await valuesOf(store, ADA), { k: 2 }, 'the values')
    same(await store.events('t'), [], 'the log')
    await refused(
      store.commit({
        point: 'test',
        threads: [{ id: 'nobody', append: [valueSet(1)] }],
        userValues: [other],
      }),
      'THREAD_NOT_FOUND',
    )
    same(await valuesOf(store, ADA), { k: 2 }, 'the values after a refused thread')
  },
  'a version is not used again after a value was removed': async (store) => {
    await setFor(store, ADA, 'k', 1)
    const version = await versionOf(store, ADA, 'k')
    await setFor(store, ADA, 'k', null, version)
    await setFor(store, ADA, 'k', 1, null)
    await refused(setFor(store, ADA, 'k', 2, version), 'VALUE_MOVED')
    await store.eraseUserValues(ADA)
    await setFor(store, ADA, 'k', 1)
    await refused(setFor(store, ADA, 'k', 2, version), 'VALUE_MOVED')
    await refused(setFor(store, ADA, 'gone', null, version), 'VALUE_MOVED')
  },
  'changes of one commit to a value of a user follow each other': async (store) => {
    const set = (value: number, expectVersion?: null) => ({
      ...ADA,
      key: 'k',
      value,
      at: 'now',
      expectVersion,
    })
    await store.commit({ point: 'test', threads: [], userValues: [set(1, null), set(2)] })
    same(await valuesOf(store, ADA), { k: 2 }, 'the last')
    const twice = [
      { ...set(0), key: 'new', expectVersion: null },
      { ...set(1), key: 'new', expectVersion: null },
    ]
    await refused(store.commit({ point: 'test', threads: [], userValues: twice }), 'VALUE_MOVED')
  },
  'a user has a limited number of values': async (store) => {
    const many = Array.from({ length: MAX_USER_VALUES }, (_, index) => ({
      ...ADA,
      key: `k${index}`,
      value: index,
      at: 'now',
    }))
    await store.commit({ point: 'test', threads: [], userValues: many })
    await refused(setFor(store, ADA, 'one more', 1), 'VALUE_LIMIT')
    await setFor(store, ADA, 'k0', 'replaced')
    await setFor(store, { ...ADA, user: 'bob' }, 'k', 1)
    await setFor(store, ADA, 'k1', null)
    await setFor(store, ADA, 'one more', 1)
    same((await store.userValues(ADA)).length, MAX_USER_VALUES, 'the number of values')
  },
  'values of users are no part of threads, and odd ones are refused': async (store) => {
    await store.commit({
      point: 'test',
      threads: [{ id: 't', create: newThread('t', { owner: 'ada' }) }],
      userValues: [{ ...ADA, key: 'k', value: 1, at: 'now' }],
    })
    await store.erase('t', [])
    await store.remove('t')
    same(await valuesOf(store, ADA), { k: 1 }, 'the values after the thread was removed')
    await refused(setFor(store, ADA, 'date', new Date(0)), 'NOT_JSON')
    await refused(setFor(store, ADA, 'a\0b', 1), 'TEXT_INVALID')
    await refused(setFor(store, { ...ADA, user: '\ud800' }, 'k', 1), 'TEXT_INVALID')
    same(await store.eraseUserValues(ADA), 1, 'the erased')
    same(await store.eraseUserValues(ADA), 0, 'the erased of a second time')
    same(await store.userValues(ADA), [], 'the values after erasing')
  },
}
