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
