import { beforeEach, describe, expect, test } from 'vitest'
import { manualClock, type ManualClock } from '@skein/base'
import type { RuntimeEvent } from '../../src/contract/event.ts'
import { createLiveBus, type LiveBus } from '../../src/live/live-bus.ts'
import type { NumberedEvent, SubscribeOptions } from '../../src/contract/subscription.ts'
import { memoryStore } from '../../src/store/memory-store.ts'
import type { Store } from '../../src/store/store.ts'
import type { ThreadChange } from '../../src/store/commit.ts'
import { coded } from './harness.ts'

const at = '2026-01-01T00:00:00.000Z'
const id = 't1'
let store: Store
let clock: ManualClock
let live: LiveBus

const thread = {
  tenant: 'd',
  owner: null,
  agent: 'a',
  parentId: null,
  rootId: id,
  title: null,
  tags: [],
  clientId: null,
  createdAt: 0,
}

beforeEach(async () => {
  store = memoryStore()
  clock = manualClock(1000)
  live = createLiveBus({ store, clock, maxDraftSize: 1000 })
  await store.commit({
    point: 'test',
    threads: [
      {
        id,
        create: thread,
        append: [{ type: 'thread_created', at, threadId: id, agent: 'a', version: 1, depth: 0 }],
      },
    ],
  })
})

async function commit(change: Omit<ThreadChange, 'id'>): Promise<void> {
  const { seqs } = await store.commit({ point: 'test', threads: [{ id, ...change }] })
  const { append = [] } = change
  const first = seqs.get(id)! - append.length + 1
  live.publish(
    id,
    append.map((event, index) => ({ seq: first + index, event })),
  )
}

const value = (n: number): RuntimeEvent => ({ type: 'value_set', at, key: 'k', value: n })
const worked: RuntimeEvent = { type: 'status_changed', at, status: 'idle' }
const stepStart: RuntimeEvent = {
  type: 'step_start',
  at,
  turnId: 't',
  stepId: 's',
  side: 'a',
  attempt: 1,
  epoch: 1,
}
const said = (text: string) =>
  ({ type: 'text_delta', at, turnId: 't', blockId: 'b', text }) as const
const message: RuntimeEvent = {
  type: 'message_added',
  at,
  turnId: 't',
  side: 'a',
  message: { id: 'm', type: 'assistant', timestamp: at, content: [] },
}

/** Everything that can happen without a timer has happened. */
const quiet = () => new Promise<void>((resolve) => setImmediate(resolve))

function collect(options: SubscribeOptions = {}): { got: NumberedEvent[]; done: Promise<void> } {
  const got: NumberedEvent[] = []
  const done = (async () => {
    for await (const event of live.subscribe(id, options)) got.push(event)
  })()
  return { got, done }
}

const ids = (events: readonly NumberedEvent[]) => events.map((event) => event.id)

describe('numbers', () => {
  test('events of the log are whole, what a step shows follows the event before it', async () => {
    const { got } = collect()
    await commit({ append: [stepStart] })
    await quiet()
    for (const text of ['a', 'b']) {
      live.show(id, [said(text)])
      await quiet()
    }
    await commit({ append: [message] })
    await quiet()
    expect(ids(got)).toEqual(['1', '2', '2.1', '2.2', '3'])
  })

  test('mail in the middle of a speech keeps its place: the reader that comes back hears the rest only', async () => {
    const abort = new AbortController()
    const first = collect({ signal: abort.signal })
    await commit({ append: [stepStart] })
    live.show(id, [said('a')])
    await quiet()
    await commit({ append: [value(1)] })
    await quiet()
    abort.abort()
    await first.done
    expect(ids(first.got)).toEqual(['1', '2', '2.1', '3.1'])
    live.show(id, [said('b')])
    const second = collect({ after: '3.1' })
    const fromLog = collect({ after: '3' })
    await quiet()
    expect(second.got).toEqual([{ id: '3.2', event: said('b') }])
    expect(fromLog.got).toEqual([{ id: '3.2', event: said('ab') }])
  })

  test('one that comes back after the step gets the log', async () => {
    await commit({ append: [stepStart] })
    live.show(id, [said('a')])
    await commit({ append: [message] })
    const { got } = collect({ after: '2.1' })
    await quiet()
    expect(ids(got)).toEqual(['3'])
  })

  test('what is no number is refused, and so is a thread that is not there', async () => {
    const next = (threadId: string, after?: string) =>
      live
        .subscribe(threadId, { ...(after && { after }) })
        [Symbol.asyncIterator]()
        .next()
    await expect(next(id, 'x')).rejects.toEqual(coded('INPUT_INVALID'))
    await expect(next(id, '1.2.3')).rejects.toEqual(coded('INPUT_INVALID'))
    await expect(next('none')).rejects.toEqual(coded('THREAD_NOT_FOUND'))
    expect(live.readers).toBe(0)
  })
})

describe('ends', () => {
  test('an abort settles at once, also while the store does not answer', async () => {
    store.events = () => new Promise(() => {})
    const abort = new AbortController()
    const { done } = collect({ signal: abort.signal })
    await quiet()
    expect(live.readers).toBe(1)
    abort.abort()
    await done
    expect(live.readers).toBe(0)
    expect(live.channels).toBe(0)
  })

  test('leaving ends a reading that waits', async () => {
    const reading = live.subscribe(id, { after: '1' })[Symbol.asyncIterator]()
    const next = reading.next()
    await quiet()
    await reading.return?.()
    expect(await next).toEqual({ done: true, value: undefined })
    expect(live.readers).toBe(0)
  })

  test('a thousand readers leave nothing behind', async () => {
    const abort = new AbortController()
    const all = Array.from({ length: 1000 }, () => collect({ signal: abort.signal }))
    await commit({ append: [value(1)] })
    await quiet()
    expect(all.every(({ got }) => got.length === 2)).toBe(true)
    abort.abort()
    await Promise.all(all.map(({ done }) => done))
    expect([live.readers, live.channels]).toEqual([0, 0])
  })

  test('until parked: ends when the head says so and everything was given', async () => {
    await commit({ append: [value(1)], head: { lifecycle: 'running' } })
    const { got, done } = collect({ untilParked: true })
    await quiet()
    await commit({ append: [value(2)], head: { lifecycle: 'idle' }, wake: { exactly: 900 } })
    await quiet()
    expect(live.readers).toBe(1)
    await commit({ wake: { exactly: null } })
    await done
    expect(ids(got)).toEqual(['1', '2', '3'])
  })

  test('until parked: a time to come is a rest', async () => {
    await commit({ append: [worked], wake: { exactly: 5000 } })
    const { got, done } = collect({ untilParked: true })
    await done
    expect(ids(got)).toEqual(['1', '2'])
  })

  test('until parked: a thread that has not worked yet is waited for', async () => {
    const { got, done } = collect({ untilParked: true })
    await quiet()
    await commit({ append: [value(1)] })
    await quiet()
    expect(live.readers).toBe(1)
    await commit({ append: [worked] })
    await done
    expect(ids(got)).toEqual(['1', '2', '3'])
    expect([live.readers, live.channels]).toEqual([0, 0])
  })

  test('until parked: work before `after` does not count, unless `since` is earlier', async () => {
    await commit({ append: [worked] })
    const { done: resumed } = collect({ untilParked: true, after: '2', since: '0' })
    await resumed
    const { got, done } = collect({ untilParked: true, after: '2' })
    await quiet()
    expect(live.readers).toBe(1)
    await commit({ append: [value(1)], head: { lifecycle: 'running' } })
    await quiet()
    await commit({ head: { lifecycle: 'idle' } })
    await done
    expect(ids(got)).toEqual(['3'])
  })

  test('until parked: a thread that rests while a descendant works is not parked', async () => {
    await store.commit({
      point: 'test',
      threads: [{ id: 'child', create: { ...thread, parentId: id, rootId: id } }],
    })
    const change = async (lifecycle: 'running' | 'waiting') => {
      await store.commit({ point: 'test', threads: [{ id: 'child', head: { lifecycle } }] })
      live.publish('child', [])
    }
    await change('running')
    await commit({ append: [worked], head: { lifecycle: 'waiting' } })
    const { done } = collect({ untilParked: true })
    await quiet()
    expect(live.readers).toBeGreaterThan(0)
    await change('waiting')
    await done
    expect([live.readers, live.channels]).toEqual([0, 0])
  })

  test('until caught up: ends with the log, whatever the thread does', async () => {
    await commit({ append: [value(1)], head: { lifecycle: 'running' } })
    const { got, done } = collect({ untilCaughtUp: true })
    await done
    expect(ids(got)).toEqual(['1', '2'])
  })

  test('a removed thread ends its readers', async () => {
    const { done } = collect()
    await quiet()
    live.removed((await store.head(id))!)
    await done
    expect(live.readers).toBe(0)
  })
})

describe('limits', () => {
  test('a late reader gets the pieces of a block as one', async () => {
    await commit({ append: [stepStart] })
    for (const text of 'hello') live.show(id, [said(text)])
    const { got } = collect({ after: '2' })
    await quiet()
    expect(got).toEqual([{ id: '2.5', event: said('hello') }])
  })

  test('a slow reader gets what it missed merged, and nothing of the log is lost', async () => {
    const reading = live.subscribe(id)[Symbol.asyncIterator]()
    await reading.next()
    for (let n = 0; n < 2000; n++) await commit({ append: [value(n)] })
    await commit({ append: [stepStart] })
    for (const text of 'hello') live.show(id, [said(text)])
    const got: NumberedEvent[] = []
    for (let n = 0; n < 2002; n++) got.push((await reading.next()).value as NumberedEvent)
    expect(ids(got).slice(0, 2001)).toEqual(Array.from({ length: 2001 }, (_, n) => `${n + 2}`))
    expect(got.at(-1)).toEqual({ id: '2002.5', event: said('hello') })
    await reading.return?.()
  })

  test('a speech that is too long to keep is left out for late readers, until it is stored', async () => {
    await commit({ append: [stepStart] })
    const early = collect({ after: '2' })
    await quiet()
    for (let n = 0; n < 30; n++) {
      live.show(id, [said('x'.repeat(50))])
      await quiet()
    }
    const late = collect({ after: '2' })
    await quiet()
    expect(late.got).toEqual([])
    expect(early.got).toHaveLength(30)
    await commit({ append: [message] })
    await quiet()
    expect(ids(late.got)).toEqual(['3'])
    expect(ids(early.got).at(-1)).toBe('3')
  })

  test('what is shown to nobody and kept for nobody is not held', async () => {
    live.show(id, [{ type: 'custom_event', at, name: 'n', data: 1, isTransient: true }])
    expect(live.channels).toBe(0)
    await commit({ append: [stepStart] })
    live.show(id, [said('a')])
    expect(live.channels).toBe(1)
    await commit({ append: [message] })
    expect(live.channels).toBe(0)
  })
})

test('changes: each thread once per look, removed ones too', async () => {
  const abort = new AbortController()
  const got: [string, number][] = []
  const done = (async () => {
    for await (const head of live.changes({ signal: abort.signal }))
      got.push([head.lifecycle, head.seq])
  })()
  await quiet()
  const both = [commit({ append: [value(1)] }), commit({ append: [value(2)] })]
  await Promise.all(both)
  await quiet()
  live.removed({ ...(await store.head(id))!, lifecycle: 'erased' })
  await quiet()
  expect(got.at(-1)).toEqual(['erased', 3])
  expect(got.filter(([, seq]) => seq === 3).length).toBeGreaterThan(1)
  abort.abort()
  await done
  expect(live.readers).toBe(0)
})
