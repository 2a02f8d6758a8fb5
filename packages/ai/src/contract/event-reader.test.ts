import { describe, expect, test } from 'vitest'
import { type EmitEvents, EventReader, readerLeft } from './event-reader.ts'

type Events = AsyncGenerator<readonly number[], string>
type Body = (emit: EmitEvents<number>, log: string[]) => Promise<string>

/** The same function as a generator, written by hand, and read by an `EventReader`. */
const kinds: Readonly<Record<string, (log: string[]) => { events: Events; isStarted(): boolean }>> =
  {
    generator(log) {
      let isStarted = false
      async function* events(): Events {
        isStarted = true
        try {
          yield [1]
          log.push('between')
          yield [2, 3]
          return 'done'
        } finally {
          log.push('end')
        }
      }
      return { events: events(), isStarted: () => isStarted }
    },
    EventReader(log) {
      let isStarted = false
      const run: Body = async (emit) => {
        isStarted = true
        try {
          await emit([1])
          log.push('between')
          await emit([2, 3])
          return 'done'
        } finally {
          log.push('end')
        }
      }
      const events = new EventReader((emit: EmitEvents<number>) => run(emit, log))
      return { events, isStarted: () => isStarted }
    },
  }

describe.each(Object.entries(kinds))('%s', (_, open) => {
  test('starts with the first next, and continues only while the reader waits', async () => {
    const log: string[] = []
    const { events, isStarted } = open(log)
    expect(isStarted()).toBe(false)
    expect(await events.next()).toEqual({ value: [1], done: false })
    await new Promise((resolve) => setTimeout(resolve, 1))
    expect(log).toEqual([])
    expect(await events.next()).toEqual({ value: [2, 3], done: false })
    expect(await events.next()).toEqual({ value: 'done', done: true })
    expect(await events.next()).toEqual({ value: undefined, done: true })
    expect(log).toEqual(['between', 'end'])
  })

  test('answers requests in their order', async () => {
    const log: string[] = []
    const { events } = open(log)
    const requests = [events.next(), events.next(), events.next(), events.next()]
    expect(await Promise.all(requests)).toEqual([
      { value: [1], done: false },
      { value: [2, 3], done: false },
      { value: 'done', done: true },
      { value: undefined, done: true },
    ])
  })

  test('a reader that leaves ends the run, which cleans up first', async () => {
    const log: string[] = []
    const { events } = open(log)
    await events.next()
    expect(await events.return('left')).toEqual({ value: 'left', done: true })
    expect(log).toEqual(['end'])
    expect(await events.next()).toEqual({ value: undefined, done: true })
  })

  test('a reader that leaves while the run works waits for its next events', async () => {
    const log: string[] = []
    const { events } = open(log)
    const requests = [events.next(), events.return('left')]
    expect(await Promise.all(requests)).toEqual([
      { value: [1], done: false },
      { value: 'left', done: true },
    ])
    expect(log).toEqual(['end'])
  })

  test('a reader that leaves before the start starts nothing', async () => {
    const { events, isStarted } = open([])
    expect(await events.return('left')).toEqual({ value: 'left', done: true })
    expect(await events.next()).toEqual({ value: undefined, done: true })
    expect(isStarted()).toBe(false)
  })

  test('an error thrown into the run is what it fails with', async () => {
    const log: string[] = []
    const { events } = open(log)
    await events.next()
    await expect(events.throw(new Error('in'))).rejects.toThrow('in')
    expect(log).toEqual(['end'])
    await expect(events.throw(new Error('after'))).rejects.toThrow('after')
  })

  test('for await reads the events and leaves early', async () => {
    const log: string[] = []
    const { events } = open(log)
    for await (const batch of events) if (batch.includes(1)) break
    expect(log).toEqual(['end'])
  })
})

test('a failure is thrown to the reader once', async () => {
  const events = new EventReader<number, string>(async (emit) => {
    await emit([1])
    throw new Error('no')
  })
  await events.next()
  await expect(events.next()).rejects.toThrow('no')
  expect(await events.next()).toEqual({ value: undefined, done: true })
})

test('an error while cleaning up reaches the reader that leaves', async () => {
  const events = new EventReader<number, string>(async (emit) => {
    try {
      await emit([1])
    } catch (error) {
      throw error === readerLeft ? new Error('not clean') : error
    }
    return 'done'
  })
  await events.next()
  await expect(events.return('left')).rejects.toThrow('not clean')
})
