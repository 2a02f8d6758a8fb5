import { expect, test } from 'vitest'
import { SharedTask } from './folder-node.ts'

/** A task whose runs end when the test says so. */
function controlled(): { task: SharedTask<number>; ends: Array<(error?: Error) => void> } {
  const ends: Array<(error?: Error) => void> = []
  const task = new SharedTask(
    () =>
      new Promise<number>((resolve, reject) => {
        const run = ends.length
        ends.push((error) => (error ? reject(error) : resolve(run)))
      }),
  )
  return { task, ends }
}

const turns = async (): Promise<void> => {
  for (let turn = 0; turn < 10; turn++) await undefined
}

test('callers of one moment share a run; who comes while it runs shares the next, which waits', async () => {
  const { task, ends } = controlled()
  const first = [task.run(), task.run()]
  await turns()
  expect(ends).toHaveLength(1)
  const second = [task.run(), task.run(), task.run()]
  await turns()
  // The run under way may have begun before their work, and two must not overlap.
  expect(ends).toHaveLength(1)
  ends[0]!()
  expect(await Promise.all(first)).toEqual([0, 0])
  await turns()
  ends[1]!()
  expect(await Promise.all(second)).toEqual([1, 1, 1])
  expect(ends).toHaveLength(2)
})

test('a failure belongs to its own callers', async () => {
  const { task, ends } = controlled()
  const failing = task.run()
  await turns()
  const next = task.run()
  ends[0]!(new Error('disk full'))
  await expect(failing).rejects.toThrow('disk full')
  await turns()
  ends[1]!()
  expect(await next).toBe(1)
})
