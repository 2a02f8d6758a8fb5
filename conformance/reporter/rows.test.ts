import { expect, test } from 'vitest'
import { loadSpecs, rowsNamedBy } from './rows.ts'

const specs = loadSpecs()

test('there are 519 rows with distinct ids, sections and titles', () => {
  const rows = specs.flatMap((spec) => spec.rows)
  expect(rows).toHaveLength(519)
  expect(new Set(rows.map(({ id }) => id)).size).toBe(519)
  expect(rows.filter(({ section, title }) => section === '' || title === '')).toEqual([])
})

test.each([
  ['UPP-012 a key may be a function', ['UPP-012']],
  ['UPP-004 UPP-005 params pass', ['UPP-004', 'UPP-005']],
  ['TP-V1, TP-03: timestamps', ['TP-V1', 'TP-03']],
  ['UAICP-24 and UAICP-25 approval', ['UAICP-24', 'UAICP-25']],
  ['SA-01', ['SA-01']],
  ['UPP-012 UPP-012 twice', ['UPP-012']],
  ['proves UPP-012', []],
  ['UPP-012: unlike UPP-013', ['UPP-012']],
  ['UPP-0123 is read whole', ['UPP-0123']],
  ['HTTP-200 is no row', []],
])('the title %j names %j', (title, ids) => {
  expect(rowsNamedBy(title)).toEqual(ids)
})
