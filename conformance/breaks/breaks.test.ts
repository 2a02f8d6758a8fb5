import { describe, expect, test } from 'vitest'
import { root, run } from '../../scripts/workspace.ts'
import { loadSpecs } from '../reporter/rows.ts'
import { digestOf, locate } from './break.ts'
import { breaksOf } from './index.ts'
import { isNoticed, readSeen } from './run-breaks.ts'

const isDeep = process.env['SKEIN_DEEP'] !== undefined
const all = breaksOf()

describe('breaks of rows', () => {
  test('each names a row and finds its place', () => {
    const rows = new Set(loadSpecs().flatMap((spec) => spec.rows.map(({ id }) => id)))
    const problems = all.flatMap(({ row, change }) => {
      try {
        if (!rows.has(row)) return [`${row} is no row`]
        const { before, after } = locate(root, change)
        return before === after ? [`${row} changes nothing`] : []
      } catch (error) {
        return [`${row}: ${(error as Error).message}`]
      }
    })
    expect(problems).toEqual([])
    expect(all.length).toBeGreaterThan(0)
  })

  test('each was seen to turn a test of its row red', () => {
    const seen = readSeen()
    const unseen = all.filter(({ row, change }) => !seen[row]?.[digestOf(row, change)])
    expect(unseen.map(({ row, change }) => `${row} ${change.clause}`)).toEqual([])
  })

  test('a place that is gone is an error, and so is one that is there twice', () => {
    const change = { clause: 'x', in: 'agents/withExchange', swap: ['no such text', ''] } as const
    expect(() => locate(root, change)).toThrow('Not in withExchange')
    expect(() => locate(root, { ...change, swap: ['known', ''] })).toThrow('More than once')
    expect(() => locate(root, { ...change, in: 'agents/noSuchName' })).toThrow('Nothing in')
  })

  test('tests that hang have not noticed a break, unless the break says that its code never ends', () => {
    const change = { clause: 'x', in: 'agents/withExchange', swap: ['a', 'b'] } as const
    expect(isNoticed('red', change)).toBe(true)
    expect(isNoticed('green', change)).toBe(false)
    expect(isNoticed('hung', change)).toBe(false)
    expect(isNoticed('hung', { ...change, hangs: true })).toBe(true)
    expect(isNoticed('green', { ...change, hangs: true })).toBe(false)
  })

  test.runIf(isDeep)('every break is planted again', { timeout: 3_600_000 }, async () => {
    const args = ['--conditions=@skein/source', 'scripts/conformance.ts', '--breaks', '--resume']
    const { code, output } = await run('node', args, { quiet: true })
    expect(output).toContain('noticed by the tests of their row')
    expect(code).toBe(0)
  })
})
