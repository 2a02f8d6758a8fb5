import { describe, expect, test } from 'vitest'
import { fullThread } from '../../test/samples.ts'
import { diffThreads } from './diff.ts'

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
