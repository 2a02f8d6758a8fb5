import { expect, test } from 'vitest'
import { loadSpecs } from '../reporter/rows.ts'
import { sharedText } from '../support/shared-data.ts'

test('the rows have the ids of the requirement tables', () => {
  const tables = ['upp', 'uap', 'uaicp', 'threads', 'standard-agents']
  const ids = tables.flatMap((name) =>
    [...sharedText(`requirements/${name}.md`).matchAll(/^\| ([A-Z]+-V?\d+) \|/gm)].map(
      (match) => match[1],
    ),
  )
  const rows = loadSpecs().flatMap((spec) => spec.rows.map(({ id }) => id))
  expect(rows.toSorted()).toEqual(ids.toSorted())
})
