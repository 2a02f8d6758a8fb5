import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { root } from '../../scripts/workspace.ts'
import { plantMutants } from './mutants.ts'
import { RowRunner } from './row-runner.ts'

const source = 'packages/base/src/sse.ts'
// Put together, so that this file is not among those that name the row.
const row = `UPP-${'095'}`
const files = ['packages/base/src/sse.test.ts']
const limitMs = 30_000
const runner = new RowRunner()
afterAll(() => runner.close())

/** The key of the mutant that makes this change. */
function keyOf(before: string, after: string): string {
  const { mutants } = plantMutants(readFileSync(join(root, source), 'utf8'), source)
  const mutant = mutants.find((each) => each.before === before && each.after === after)
  return `${source}#${mutant?.id ?? `none: ${before}`}`
}

// Starting Vitest takes seconds on a busy machine.
test('the tests of a row notice a mutant in what they prove, and pass with one in what they do not', async () => {
  const plain = await runner.run({ row, files, limitMs })
  expect(plain).toMatchObject({ passed: 1, isRed: false })
  const reached = plain === 'stopped' ? [] : plain.reached.flatMap(({ mutants }) => mutants)
  const noticed = keyOf("'data:'", "''")
  const unnoticed = keyOf('this.#retry === undefined', '(this.#retry) !== (undefined)')
  const elsewhere = keyOf("'SSE_EVENT_TOO_LARGE'", "''")
  expect(reached).toContain(noticed)
  expect(reached).toContain(unnoticed)
  expect(reached).not.toContain(elsewhere)
  expect(await runner.run({ row, files, limitMs, mutant: noticed })).toMatchObject({ isRed: true })
  expect(await runner.run({ row, files, limitMs, mutant: unnoticed })).toMatchObject({
    isRed: false,
  })
}, 120_000)
