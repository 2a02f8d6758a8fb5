import { manualClock, sequentialIds } from '@skein/base'
import { describe, expect, test } from 'vitest'
import { fullThread } from '../../test/samples.ts'
import { diffThreads, forkThread } from './fork.ts'
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

describe('diffThreads', () => {
  const thread = fullThread()

  test('finds nothing between equals', () => {
    expect(diffThreads(thread, structuredClone(thread))).toEqual({
      commonTurns: thread.turns.length,
      differences: [],
    })
  })

  test('tells where two threads part, and how', () => {
    const other = structuredClone(thread) as unknown as {
      title?: string
      turns: { parts?: unknown }[]
    }
    other.title = 'new'
    other.turns.pop()
    const { commonTurns, differences } = diffThreads(thread, other as never)
    expect(commonTurns).toBe(thread.turns.length - 1)
    expect(differences.map(({ pointer, kind }) => [pointer, kind])).toEqual([
      [`/turns/${thread.turns.length - 1}`, 'removed'],
      ['/title', 'added'],
    ])
  })

  test('null is not absent, and a changed leaf is named by its place', () => {
    const other = structuredClone(thread) as never as {
      turns: { messages: { usage?: object | null }[] }[]
    }
    other.turns[1]!.messages[1]!.usage = null
    const { differences, commonTurns } = diffThreads(thread, other as never)
    expect(commonTurns).toBe(1)
    expect(differences).toEqual([
      {
        pointer: '/turns/1/messages/1/usage',
        kind: 'changed',
        before: { input_tokens: 10, output_tokens: 5 },
        after: null,
      },
    ])
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

  test('TP-52 differences name every value that is there, not there or another one', () => {
    const base = fullThread()
    const diff = (before: object, after: object) =>
      diffThreads({ ...base, x: before } as never, { ...base, x: after } as never)
    expect(diff([1, { a: 1 }], [1, { a: 2 }, 3]).differences).toEqual([
      { pointer: '/x/1/a', kind: 'changed', before: 1, after: 2 },
      { pointer: '/x/2', kind: 'added', after: 3 },
    ])
    expect(diff([1, 2], []).differences).toEqual([
      { pointer: '/x/0', kind: 'removed', before: 1 },
      { pointer: '/x/1', kind: 'removed', before: 2 },
    ])
    expect(diff({ a: 1, b: undefined, c: 2 }, { b: 3, c: undefined, d: 4, e: undefined })).toEqual({
      commonTurns: base.turns.length,
      differences: [
        { pointer: '/x/a', kind: 'removed', before: 1 },
        { pointer: '/x/c', kind: 'removed', before: 2 },
        { pointer: '/x/b', kind: 'added', after: 3 },
        { pointer: '/x/d', kind: 'added', after: 4 },
      ],
    })
    expect(diff([], {}).differences).toEqual([
      { pointer: '/x', kind: 'changed', before: [], after: {} },
    ])
    expect(diff({}, []).differences).toHaveLength(1)
    expect(diff({ n: Number.NaN }, { n: Number.NaN }).differences).toEqual([])
    expect(diff({ n: Number.NaN }, { n: 0 }).differences).toHaveLength(1)
    expect(diff({ n: 0 }, { n: Number.NaN }).differences).toHaveLength(1)
    expect(diff({ 'a/b~c': 1 }, {}).differences).toMatchObject([{ pointer: '/x/a~1b~0c' }])
    expect(diff({}, { toString: 1 }).differences).toMatchObject([{ kind: 'added' }])
    const [first, ...others] = base.turns
    expect(diffThreads({ ...base, turns: [first!] }, base).commonTurns).toBe(1)
    expect(diffThreads(base, { ...base, turns: others }).commonTurns).toBe(0)
  })
})
