import { expect, test } from 'vitest'
import { toMarkdown, toResultsPage } from './markdown.ts'
import { summarise } from './statistics.ts'

test('median and middle half', () => {
  expect(summarise([5, 1, 3, 2, 4])).toEqual({ median: 3, low: 2, high: 4, samples: 5 })
  expect(summarise([1, 2])).toMatchObject({ median: 1.5 })
})

test('the table says ratio, time, spread and rate', () => {
  const page = toMarkdown(
    [
      {
        id: 'base/x',
        title: 'X',
        measure: 'wall',
        unit: 'ms',
        amount: { value: 8, unit: 'MB' },
        baseline: 'a',
        contenders: [
          { name: 'a', ratio: 1, median: 10, low: 9, high: 11, samples: 3 },
          { name: 'b', ratio: 2.5, median: 25, low: 24, high: 26, samples: 3 },
        ],
      },
    ],
    'a machine',
  )
  expect(page).toContain('| a (baseline) | 1.00x | 10.0 | 9.00 – 11.0 | 800 MB/s |')
  expect(page).toContain('| b | 2.50x | 25.0 | 24.0 – 26.0 | 320 MB/s |')
})

test('the page of results records the load and names each row where another needs less', () => {
  const contender = { low: 1, high: 2, samples: 5 }
  const result = (id: string, ours: number) => ({
    id,
    title: id,
    measure: 'cpu',
    unit: 'ms',
    baseline: 'raw',
    load: ours,
    contenders: [
      { ...contender, name: 'raw', ratio: 1, median: 10 },
      { ...contender, name: 'skein', ratio: ours, median: 10 * ours },
    ],
  })
  const page = toResultsPage([result('ai/slow', 1.4), result('ai/fast', 0.5)], 'a machine')
  expect(page).toContain('on a machine; load of the machine while it ran: 0.500 to 1.40')
  expect(page).toContain('| ai/slow | 1.40x | raw 1.00x |')
  expect(page).not.toContain('| ai/fast | 0.50x | raw')
})
