import { expect, test } from 'vitest'
import { uppTools } from '../src/adapters/upp-tools.ts'
import { init, kit, taskOf, toolOf, undoBy } from './support/kit.ts'

test('UAICP-02 a UPP call that waits is deferred with the id of its approval request', async () => {
  const { governor, world } = await kit()
  const high = toolOf(world, 'high', { risk: 'write_high_risk', rollback: undoBy('high') })
  const task = taskOf({ tools: [high, toolOf(world, 'undo_high')] })
  const answers: unknown[] = []
  const result = await governor.run(task, init, async (run) => {
    const [tool] = uppTools(run, [high])
    answers.push(...(await Promise.all([1, 2].map((n) => tool!.run({ n }, undefined)))))
    return 1
  })
  if (result.outcome !== 'pending') throw new Error(result.state)
  const idOf = (n: number) =>
    result.waiting.find(({ action }) => JSON.stringify(action.args) === `{"n":${n}}`)?.id
  expect(answers).toEqual(
    [1, 2].map((n) => ({
      kind: 'approval',
      request: idOf(n),
      [Symbol.for('skein.deferred')]: true,
    })),
  )
  expect(idOf(1)).not.toBe(idOf(2))
  expect(idOf(1)).toMatch(/#\d+$/)
})
