import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { LongReads } from './long-reads.ts'

test('three long reads run at the same time, in order; short ones do not wait, and failures free their places', async () => {
  const reads = new LongReads()
  const ends: (() => void)[] = []
  const begun: number[] = []
  const begin = (rows: number, index: number) =>
    reads.run(rows, async () => {
      begun.push(index)
      if (rows > 200) await new Promise<void>((resolve) => void ends.push(resolve))
      if (index === 1) throw new Error('broken')
      return index
    })
  const results = Promise.allSettled([0, 1, 2, 3, 4].map((index) => begin(1000, index)))
  expect(await begin(200, 9)).toBe(9)
  expect(begun).toEqual([0, 1, 2, 9])
  for (let end = 0; end < 5; end++) {
    ends[end]!()
    await nextTurn()
  }
  expect(begun).toEqual([0, 1, 2, 9, 3, 4])
  expect((await results).map(({ status }) => status)).toEqual([
    'fulfilled',
    'rejected',
    ...Array.from({ length: 3 }, () => 'fulfilled'),
  ])
  void begin(1000, 5)
  expect(begun.at(-1)).toBe(5)
})
