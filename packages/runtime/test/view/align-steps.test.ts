import { alignSteps } from '@skein/runtime/view'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'

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
