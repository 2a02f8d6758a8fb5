import type { RuntimeEvent } from '../contract/event.ts'
import { removalsOf, type Store } from '../store/store.ts'
import type { ThreadHead } from '../store/head.ts'
import type { ThreadQuery } from '../store/thread-query.ts'
import type { WaitingQuery } from '../store/waiting-query.ts'
import { placeOf } from '../store/select-threads.ts'
import { newThread, same, valueSet } from './contract.ts'

type Case = (store: Store) => Promise<void>

/** What lists of threads, questions and audit lines promise when they are read in pages. */
export const listCases: Readonly<Record<string, Case>> = {
  'pages that continue after a place have every thread once, in each order and with each filter':
    async (store) => {
      await forest(store)
      const orders = ['activity', 'created', 'oldest'] as const
      const filters: readonly ThreadQuery[] = [
        {},
        { owner: 'ann' },
        { agent: 'writer' },
        { lifecycle: 'failed' },
        { lifecycle: 'queued' },
        { lifecycle: 'idle' },
        { parentId: null },
        { parentId: 't0' },
        { rootId: 't0' },
        { isWaiting: true },
        { search: 'title 1' },
        { tag: 'even' },
        { tag: 'even', owner: 'ann', isWaiting: false },
        { idPart: 't1' },
      ]
      for (const sort of orders)
        for (const filter of filters)
          for (const tenant of ['acme', undefined]) {
            const query: ThreadQuery = { ...filter, sort, tenant }
            const whole = (await store.list({ ...query, limit: 1000 })).map(({ id }) => id)
            const what = JSON.stringify(query)
            if (whole.length < 2) throw new Error(`The threads of ${what} are too few for pages.`)
            const byPages: string[] = []
            const byOffset: string[] = []
            for (let after: ThreadQuery['after']; ;) {
              const page: readonly ThreadHead[] = await store.list({ ...query, limit: 3, after })
              byPages.push(...page.map(({ id }) => id))
              const last = page.at(-1)
              if (!last || page.length < 3) break
              after = placeOf(last, sort)
            }
            for (let offset = 0; offset < whole.length; offset += 3)
              byOffset.push(
                ...(await store.list({ ...query, limit: 3, offset })).map(({ id }) => id),
              )
            same(byPages, whole, `the pages of ${what}`)
            same(byOffset, whole, `the pages by offset of ${what}`)
          }
    },
  'threads are found by the beginning or the end of their ids, in any tenant': async (store) => {
    await store.commit({
      point: 'test',
      threads: ['ab-1', 'b-ab', 'cab1', 'd_1%'].map((id) => ({ id, create: newThread(id) })),
    })
    const idsOf = async (idPart: string) =>
      (await store.list({ idPart, sort: 'oldest', limit: 10 }))
        .map(({ id }) => id)
        .toSorted()
        .join()
    same(await idsOf('ab'), 'ab-1,b-ab', 'by a part of the id')
    same(await idsOf('1'), 'ab-1,cab1', 'by the end')
    same(await idsOf('_'), '', 'no wildcards')
    same(await idsOf('d_1%'), 'd_1%', 'by the whole id')
  },
  'usage is summed over a thread and its descendants': async (store) => {
    const parents = { a: null, b: 'a', c: 'a', d: 'b', e: 'd', z: null } as const
    for (const [id, parentId] of Object.entries(parents)) {
      const create = newThread(id === 'z' ? id : 'a', { parentId })
      await store.commit({ point: 'test', threads: [{ id, create }] })
    }
    const own = { a: 1, b: 10, c: 100, d: 1000, e: 10_000, z: 7 }
    for (const [id, tokens] of Object.entries(own)) {
      const head = { tokens, costUsd: tokens / 4, unpriced: 1, waiting: id === 'e' ? 2 : 0 }
      await store.commit({ point: 'test', threads: [{ id, head }] })
    }
    const usages = await store.subtreeUsage(['z', 'a', 'b', 'c', 'd', 'nobody'])
    const sum = (tokens: number, unpriced: number, waiting: number) => {
      return { tokens, costUsd: tokens / 4, unpriced, waiting }
    }
    same(
      Object.fromEntries([...usages].toSorted()),
      {
        a: sum(11_111, 5, 2),
        b: sum(11_010, 3, 2),
        c: sum(100, 1, 0),
        d: sum(11_000, 2, 2),
        z: sum(7, 1, 0),
      },
      'the sums',
    )
    same((await store.subtreeUsage([])).size, 0, 'no threads')
  },
  'the tenants that have threads are listed': async (store) => {
    same(await store.tenants(), [], 'no tenants')
    for (const [id, tenant] of [
      ['1', 'b'],
      ['2', 'a'],
      ['3', 'b'],
    ] as const)
      await store.commit({ point: 'test', threads: [{ id, create: newThread(id, { tenant }) }] })
    same(await store.tenants(), ['a', 'b'], 'both tenants')
    await store.remove('2')
    same(await store.tenants(), ['b'], 'the tenant that is left')
  },
  'a question waits from the commit that opens it to the commit that closes it': async (store) => {
    await asking(store, 'a', 'b')
    const open = async (query: WaitingQuery = {}) =>
      (await store.waiting(query)).map(({ interruptId }) => interruptId).join()
    same(await open(), '', 'none')
    await say(store, 'a', asks('q2', 'call-2', 200))
    await say(store, 'b', asks('q1', 'call-1', 100), asks('q3', 'call-3', 300, 'in_doubt'))
    same(await open(), 'q1,q2,q3', 'the oldest first')
    same(
      await store.waiting({ kind: 'in_doubt' }),
      [
        {
          threadId: 'b',
          rootId: 'b',
          tenant: 'acme',
          owner: 'b-owner',
          agent: 'helper',
          interruptId: 'q3',
          subject: 'call call-3',
          kind: 'in_doubt',
          openedAt: 300,
          until: null,
        },
      ],
      'the row',
    )
    await say(store, 'a', asks('child', 'call-2', 250, 'child'))
    same(await open(), 'q1,q3', 'a call that waits for a child asks no person')
    await say(store, 'a', asks('q4', 'call-2', 400), asks('q5', 'call-2', 500))
    same(await open(), 'q1,q3,q5', 'a later question replaces the one about the same call')
    const answer = { type: 'approve' } as const
    await say(store, 'b', { type: 'interrupt_answered', at: at(600), interruptId: 'q1', answer })
    same(await open(), 'q3,q5', 'after an answer')
    const end = { toolCallId: 'call-3', toolName: 'pay', turnId: 'turn', result: 'x' } as const
    await say(store, 'b', {
      type: 'tool_execution_end',
      at: at(700),
      ...end,
      outcome: 'interrupted',
    })
    same(await open(), 'q5', 'after the end of the call')
    await say(store, 'a', { type: 'thread_terminated', at: at(800) })
    same(await open(), '', 'after the end of the thread')
  },
  'a refused commit opens and closes no question': async (store) => {
    await asking(store, 'a')
    await say(store, 'a', asks('q1', 'call-1', 100))
    const answer = { type: 'deny', reason: 'no' } as const
    const append = [
      { type: 'interrupt_answered', at: at(2), interruptId: 'q1', answer } as const,
      asks('q2', 'call-2', 3),
    ]
    const late = store.commit({ point: 'test', threads: [{ id: 'a', append, expectSeq: 0 }] })
    await late.catch(() => undefined)
    same(
      (await store.waiting({})).map(({ interruptId }) => interruptId),
      ['q1'],
      'the question',
    )
  },
  'questions of effects and requests for variables wait and end too': async (store) => {
    await asking(store, 'a')
    const open = async (openAt?: number) =>
      (await store.waiting({ openAt })).map(({ interruptId }) => interruptId).join()
    await say(store, 'a', { ...asks('q1', 'effect-1', 100), effectId: 'effect-1' })
    await say(store, 'a', needs('v1', 200, 1000), needs('v2', 300, 2000))
    same(await open(), 'q1,v1,v2', 'all')
    same(await open(999), 'q1,v1,v2', 'before the first request expires')
    same(await open(1000), 'q1,v2', 'after it has expired')
    const effectRun = { effectId: 'effect-1', attempt: 1, epoch: 1 }
    await say(store, 'a', { type: 'effect_started', at: at(400), ...effectRun })
    same(await open(), 'v1,v2', 'after the effect has started')
    await say(store, 'a', { type: 'variables_settled', at: at(500), requestId: 'v1', error: 'no' })
    await say(store, 'a', {
      type: 'variables_provided',
      at: at(500),
      requestId: 'v2',
      values: {},
    } as RuntimeEvent)
    same(await open(), '', 'after both requests were answered')
    const head = (waiting: number, ...append: readonly RuntimeEvent[]) =>
      store.commit({ point: 'test', threads: [{ id: 'a', append, head: { waiting } }] })
    await head(1, needs('v3', 600, 3000))
    same(await open(), 'v3', 'a request that will expire')
    await head(0)
    same(await open(), '', 'after the thread has counted nothing that waits')
  },
  'questions are found by tenant, owner, agent, kind, tree, thread and id': async (store) => {
    await asking(store, 'a1', 'b2')
    const other = newThread('c3', { tenant: 'beta', owner: 'a1-owner', agent: 'writer' })
    await store.commit({ point: 'test', threads: [{ id: 'c3', create: other }] })
    const child = newThread('a1', { parentId: 'a1', owner: 'a1-owner' })
    await store.commit({ point: 'test', threads: [{ id: 'd4', create: child }] })
    for (const [index, id] of ['a1', 'b2', 'c3', 'd4'].entries())
      await say(store, id, asks(`q-${id}`, 'call', 100 + index, id === 'b2' ? 'input' : 'approval'))
    const idsOf = async (query: WaitingQuery) =>
      (await store.waiting(query)).map(({ threadId }) => threadId).join()
    same(await idsOf({ tenant: 'beta' }), 'c3', 'by tenant')
    same(await idsOf({ tenant: 'acme', owner: 'a1-owner' }), 'a1,d4', 'by owner')
    same(await idsOf({ owner: 'a1-owner' }), 'a1,c3,d4', 'by owner in all tenants')
    same(await idsOf({ agent: 'writer' }), 'c3', 'by agent')
    same(await idsOf({ tenant: 'acme', agent: 'helper' }), 'a1,b2,d4', 'by agent of a tenant')
    same(await idsOf({ tenant: 'acme', kind: 'input' }), 'b2', 'by kind')
    same(await idsOf({ rootId: 'a1' }), 'a1,d4', 'by tree')
    same(await idsOf({ tenant: 'beta', rootId: 'a1' }), '', 'by the tree of another tenant')
    same(await idsOf({ threadId: 'd4' }), 'd4', 'by thread')
    same(await idsOf({ interruptId: 'q-b2' }), 'b2', 'by id')
    same(await idsOf({ threadIdPart: 'b' }), 'b2', 'by the beginning of the id of a thread')
    same(await idsOf({ tenant: 'acme', interruptIdPart: '-d4' }), 'd4', 'by the end of an id')
    same(await idsOf({ interruptIdPart: '_' }), '', 'no wildcards')
    await store.commit({ point: 'test', threads: [{ id: 'b2', head: { owner: 'eve' } }] })
    same(await idsOf({ tenant: 'acme', owner: 'eve' }), 'b2', 'by the new owner')
    await store.erase('a1', [])
    await store.remove('c3')
    same(await idsOf({}), 'b2,d4', 'after an erasure and a removal')
  },
  'pages of questions have every question once, also when many were asked at the same time': async (
    store,
  ) => {
    await asking(store, 'a', 'b')
    const times = [5, 5, 5, 1, 5, 2, 5, 9]
    for (const id of ['b', 'a'])
      await say(store, id, ...times.map((time, index) => asks(`${id}${index}`, `c${index}`, time)))
    const whole = (await store.waiting({ tenant: 'acme' })).map(({ interruptId }) => interruptId)
    same(whole.length, 16, 'the number of questions')
    const byPages: string[] = []
    for (let after: WaitingQuery['after']; ;) {
      const page = await store.waiting({ tenant: 'acme', limit: 3, after })
      byPages.push(...page.map(({ interruptId }) => interruptId))
      after = page.at(-1)
      if (page.length < 3) break
    }
    same(byPages, whole, 'the pages')
  },
  'an erased thread has neither its owner nor the id of the client, and is counted as gone': async (
    store,
  ) => {
    const create = newThread('a', { owner: 'ann@example.org', clientId: 'order 7' })
    await store.commit({ point: 'test', threads: [{ id: 'a', create, append: [valueSet(1)] }] })
    await say(store, 'a', asks('q1', 'call', 5))
    await store.erase('a', [valueSet('erased')])
    const { owner, clientId, lifecycle } = (await store.head('a'))!
    same({ owner, clientId, lifecycle }, { owner: null, clientId: null, lifecycle: 'erased' }, 'a')
    same(await store.list({ tenant: 'acme', owner: 'ann@example.org' }), [], 'the threads of ann')
    same(await store.list({ search: 'order' }), [], 'the threads with the id in their labels')
    same(await store.headByClientId('acme', 'order 7'), undefined, 'the thread by that id')
    same(await store.waiting({}), [], 'the questions')
    same([...(await store.counters(removalsOf('acme'))).values()], [1], 'the threads that are gone')
    const again = { id: 'b', create: { ...create, rootId: 'b' } }
    await store.commit({ point: 'test', threads: [again] }) // the id is free again
  },
  'audit lines are read in pages': async (store) => {
    const audit = Array.from({ length: 7 }, (_, seq) => {
      const requestId = seq % 2 === 0 ? 'even' : 'odd'
      return { tree: 't', requestId, seq, line: `{"n":${seq}}` }
    })
    await store.commit({ point: 'test', threads: [], audit })
    const ask = async (options: Parameters<Store['audit']>[1]) =>
      (await store.audit('t', options)).map(({ index }) => index).join()
    same(await ask({ limit: 3 }), '0,1,2', 'the first page')
    same(await ask({ from: 3, limit: 3 }), '3,4,5', 'the second page')
    same(await ask({ from: 6, limit: 3 }), '6', 'the last page')
    same(await ask({ from: 7, limit: 3 }), '', 'after the end')
    same(await ask({ requestId: 'odd', from: 2, limit: 1 }), '3', 'a page of one request')
  },
}

function at(ms: number): string {
  return new Date(ms).toISOString()
}

/** Creates root threads that may ask questions. */
async function asking(store: Store, ...ids: readonly string[]): Promise<void> {
  const threads = ids.map((id) => ({ id, create: newThread(id, { owner: `${id}-owner` }) }))
  await store.commit({ point: 'test', threads })
}

async function say(store: Store, id: string, ...append: readonly RuntimeEvent[]): Promise<void> {
  await store.commit({ point: 'test', threads: [{ id, append }] })
}

function asks(
  id: string,
  toolCallId: string,
  time: number,
  kind: 'approval' | 'input' | 'in_doubt' | 'child' = 'approval',
): Extract<RuntimeEvent, { type: 'interrupt_opened' }> {
  const interrupt = { id, toolCallId, kind, request: {} }
  return { type: 'interrupt_opened', at: at(time), turnId: 'turn', interrupt }
}

function needs(requestId: string, time: number, until: number): RuntimeEvent {
  const request = { relation: 'child', toolName: 'child', missing: ['KEY'], arguments: {} }
  const event = { type: 'variables_requested', at: at(time), requestId, expiresAt: at(until) }
  return { ...event, ...request } as RuntimeEvent // the store reads only these fields
}

/** Creates threads of two tenants with all that lists filter by; several have the same times. */
async function forest(store: Store): Promise<void> {
  const lifecycles = ['idle', 'failed', 'queued', 'waiting'] as const
  for (let index = 0; index < 36; index++) {
    const id = `t${index}`
    const isChild = index % 3 === 2
    const create = newThread(isChild ? 't0' : id, {
      tenant: index % 9 === 7 ? 'beta' : 'acme',
      owner: index % 2 === 0 ? 'ann' : null,
      agent: index % 5 < 2 ? 'writer' : 'helper',
      parentId: isChild ? 't0' : null,
      title: `Title ${index}`,
      tags: index % 2 === 0 ? ['even', 'even'] : ['odd'],
      createdAt: 1000 + (index % 7),
    })
    const head = {
      lifecycle: lifecycles[index % 4]!,
      waiting: index % 4 === 3 ? 1 : 0,
    }
    const append = [valueSet(index, 5000 + (index % 5))]
    await store.commit({ point: 'test', threads: [{ id, create, head, append }] })
  }
}
