import { manualClock, sequentialIds } from '@skein/base'
import { describe, expect, test } from 'vitest'
import { fullThread } from '../../test/samples.ts'
import { forkThread } from './fork.ts'
import { validateThread } from './validate.ts'

const options = { clock: manualClock(Date.UTC(2026, 5, 1)), ids: sequentialIds('fork-') }

describe('forkThread', () => {
  const thread = fullThread()

  test('keeps the first turns by reference and says where it came from', () => {
    const before = JSON.stringify(thread)
    const fork = forkThread(thread, { turns: 2, relation: 'regenerate', ...options })
    expect(fork.turns).toHaveLength(2)
    expect(fork.turns[1]).toBe(thread.turns[1])
    expect(fork).toMatchObject({
      thread_id: 'fork-1',
      parent_thread_id: thread.thread_id,
      created_at: '2026-06-01T00:00:00.000Z',
      relationships: {
        links: [{ thread_id: thread.thread_id, relation: 'regenerate', metadata: { turns: 2 } }],
      },
    })
    expect(JSON.stringify(thread)).toBe(before)
    expect(validateThread(fork).issues.filter((issue) => issue.severity === 'error')).toEqual([])
  })

  test('refuses a place that is not there', () => {
    for (const turns of [-1, 1.5, 99]) {
      expect(() => forkThread(thread, { turns })).toThrow(
        expect.objectContaining({ code: 'FORK_OUT_OF_RANGE' }),
      )
    }
  })
})

describe('TP-52 a fork', () => {
  test('TP-52 has the ids, times and links that it was given, and all else of the original', () => {
    const links = [{ thread_id: 'older', relation: 'spawned_from' }]
    const original = {
      ...fullThread(),
      metadata: { a: 1 },
      extra: [1],
      relationships: { links, note: 'kept' },
    }
    const clock = manualClock(Date.UTC(2026, 5, 1))
    const given = { clock, ids: sequentialIds('fork-') }
    const now = '2026-06-01T00:00:00.000Z'
    const whole = forkThread(original, given)
    const link = { thread_id: original.thread_id, relation: 'fork', metadata: { turns: 3 } }
    expect(whole).toEqual({
      ...original,
      thread_id: 'fork-1',
      created_at: now,
      updated_at: now,
      parent_thread_id: original.thread_id,
      relationships: { note: 'kept', links: [...links, link] },
    })
    expect(original.relationships.links).toHaveLength(1)
    const empty = forkThread(fullThread(), { ...given, turns: 0, threadId: 'mine' })
    expect(empty).toMatchObject({
      thread_id: 'mine',
      turns: [],
      relationships: { links: [{ relation: 'fork', metadata: { turns: 0 } }] },
    })
    const again = forkThread(forkThread(fullThread(), given), given)
    expect(again.relationships?.links).toHaveLength(2)
    expect(forkThread(fullThread()).thread_id).toMatch(/^[0-9a-f-]{36}$/)
    expect(() => forkThread(fullThread(), { turns: 4 })).toThrow('3 turns cannot be forked after 4')
  })
})
