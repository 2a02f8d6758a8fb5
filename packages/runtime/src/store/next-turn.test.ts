import { expect, test } from 'vitest'
import { doPart, nextTurn } from './next-turn.ts'

/** Counts how often each turn of the event loop has called `count`, until `work` is done. */
async function countPerTurn(
  work: (count: () => void) => Promise<unknown>,
): Promise<readonly number[]> {
  const counts = [0]
  let isDone = false
  const turn = (): void => {
    counts.push(0)
    if (!isDone) setImmediate(turn)
  }
  setImmediate(turn)
  await work(() => counts.push(counts.pop()! + 1))
  isDone = true
  return counts
}

function busyFor(ms: number): void {
  for (const until = performance.now() + ms; performance.now() < until;);
}

const many = Array.from({ length: 12 }, (_, index) => index)

test('parts of many works run one in each turn of the event loop', async () => {
  const order: number[] = []
  const counts = await countPerTurn((count) =>
    Promise.all(
      many.map(async (own) => {
        for (let part = 0; part < 3; part++) {
          await nextTurn()
          order.push(own)
          count()
        }
      }),
    ),
  )
  expect(Math.max(...counts)).toBe(1)
  expect(order).toEqual([...many, ...many, ...many]) // they take turns
})

test('works that begin together share the time of a turn, and short ones do not wait', async () => {
  const long = await countPerTurn((count) =>
    Promise.all(many.map(() => doPart(() => (busyFor(6), count())))),
  )
  expect(Math.max(...long)).toBe(1)
  await nextTurn()
  const short = await countPerTurn((count) => Promise.all(many.map(() => doPart(count))))
  expect(Math.max(...short)).toBe(many.length)
  await expect(doPart(() => Promise.reject(new Error('broken')))).rejects.toThrow('broken')
})
