import { manualClock, sequentialIds } from '@skein/base'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { fullThread } from '../../test/samples.ts'
import { alignSteps, diffThreads, forkThread } from './fork.ts'
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

describe('alignSteps', () => {
  test('ids and times do not count; the changed step stands beside its other version', () => {
    const say = (id: string, text: string) => ({ type: 'message', from: 'user', id, at: id, text })
    const call = (id: string, order: string) => ({ type: 'call', toolName: 'look', id, order })
    const [before, after] = [
      [say('1', 'Hello'), say('2', 'Where is O-8?'), call('3', 'O-8'), say('4', 'Bye')],
      [
        say('a', 'Hello'),
        say('b', 'Where is O-7?'),
        call('c', 'O-7'),
        call('d', 'O-9'),
        say('e', 'Bye'),
      ],
    ]
    expect(
      alignSteps<object>(before!, after!).map(({ before: a, after: b, isSame }) => [
        a && 'id' in a && a.id,
        b && 'id' in b && b.id,
        isSame,
      ]),
    ).toEqual([
      ['1', 'a', true],
      ['2', 'b', false],
      ['3', 'c', false],
      [undefined, 'd', false],
      ['4', 'e', true],
    ])
  })

  test('every step is there once and in order; what is equal is common to both', () => {
    const words = fc.array(fc.constantFrom('a', 'b', 'c', 'd'), { maxLength: 12 })
    fc.assert(
      fc.property(words, words, (before, after) => {
        const pairs = alignSteps(before, after)
        expect(pairs.flatMap(({ before: one }) => one ?? [])).toEqual(before)
        expect(pairs.flatMap(({ after: one }) => one ?? [])).toEqual(after)
        for (const pair of pairs) expect(pair.isSame).toBe(pair.before === pair.after)
        expect(alignSteps(before, before).every(({ isSame }) => isSame)).toBe(true)
      }),
    )
  })
})
