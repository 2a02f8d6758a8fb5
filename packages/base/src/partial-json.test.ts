import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parsePartialJson, PartialJson } from './partial-json.ts'
import { processorMs } from '../../../conformance/support/processor-time.ts'

const runs = { seed: 7, numRuns: process.env['SKEIN_DEEP'] ? 5_000 : 200 }
/** JSON values as JSON knows them: no -0, no `__proto__`. */
const json = fc
  .jsonValue({ maxDepth: 4 })
  .map((value) => JSON.parse(JSON.stringify(value)) as unknown)
  .filter((value) => !JSON.stringify(value).includes('__proto__'))

/** True when `later` is what `earlier` could have become. */
function grew(earlier: unknown, later: unknown): boolean {
  if (earlier === undefined) return true
  if (typeof earlier === 'string') return typeof later === 'string' && later.startsWith(earlier)
  if (typeof earlier === 'number') return typeof later === 'number'
  if (Array.isArray(earlier))
    return Array.isArray(later) && earlier.every((item, index) => grew(item, later[index]))
  if (typeof earlier === 'object' && earlier !== null) {
    if (typeof later !== 'object' || later === null || Array.isArray(later)) return false
    const now = new Map(Object.entries(later))
    return Object.entries(earlier).every(([key, item]) => now.has(key) && grew(item, now.get(key)))
  }
  return earlier === later
}

describe('laws', () => {
  test('every prefix of valid JSON has a value that only grows, and the whole is JSON.parse', () => {
    fc.assert(
      fc.property(json, fc.constantFrom(undefined, 2), (value, indent) => {
        const text = JSON.stringify(value, null, indent)
        let before: unknown
        for (let end = 1; end <= text.length; end++) {
          const now = parsePartialJson(text.slice(0, end))
          if (!grew(before, now)) throw new Error(`${text.slice(0, end)} shrank`)
          before = now
        }
        expect(before).toEqual(value)
      }),
      runs,
    )
  })

  test('pieces of any size give what the whole gives, at every step', () => {
    fc.assert(
      fc.property(json, fc.array(fc.nat(7), { minLength: 1 }), (value, sizes) => {
        const text = JSON.stringify(value)
        const parser = new PartialJson()
        for (let at = 0, turn = 0; at < text.length; turn++) {
          const size = sizes[turn % sizes.length]! + 1
          parser.push(text.slice(at, (at += size)))
          expect(parser.value()).toEqual(parsePartialJson(text.slice(0, at)))
        }
      }),
      runs,
    )
  })

  test('any finished text is read as JSON.parse reads it; other text gives JSON or nothing', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(...'{}[]":,-.0eEtrufalsn \\/+1') }), (text) => {
        const value = parsePartialJson(text + ' ')
        let isJson = true
        try {
          JSON.parse(text)
        } catch {
          isJson = false
        }
        if (isJson) expect(value).toEqual(JSON.parse(text))
        else expect(() => JSON.parse(JSON.stringify(value) ?? 'null')).not.toThrow()
      }),
      { ...runs, numRuns: runs.numRuns * 5 },
    )
  })
})

test.each([
  ['', undefined],
  ['  ', undefined],
  ['{', {}],
  ['{{{', undefined],
  ['{"', {}],
  ['{"na', {}],
  ['{"name"', {}],
  ['{"name":', {}],
  ['{"name": "', { name: '' }],
  ['{"name": "J', { name: 'J' }],
  ['{"a\\"b": 1', { 'a"b': 1 }],
  ['{"a": "x\\\\"', { a: 'x\\' }],
  ['{"a": "x\\', { a: 'x' }],
  ['{"a": "x\\u00', { a: 'x' }],
  ['{"a": "\\ud83d', { a: '' }],
  ['{"a": "\\ud83d\\ude00', { a: '😀' }],
  ['{"a": 1, "b": -', { a: 1 }],
  ['{"a": -1.', { a: -1 }],
  ['{"a": 1e', { a: 1 }],
  ['{"a": 1.5e+', { a: 1.5 }],
  ['[1, t', [1, true]],
  ['[fals', [false]],
  ['[nul', [null]],
  ['[1,', [1]],
  ['[[1],[2', [[1], [2]]],
  ['"abc', 'abc'],
  ['12', 12],
  ['{"a":1} x', undefined],
  ['{"a":1}}', undefined],
  ['[01,', undefined],
  ['[1.2.3]', undefined],
  ['[tru3', undefined],
  ['["\u0001', undefined],
  ['["\\x', undefined],
  ['[1}', undefined],
  ['{"a",', undefined],
  ['[,', undefined],
])('%j is read as %j', (text, value) => {
  expect(parsePartialJson(text)).toEqual(value)
})

test('a snapshot does not change when more comes', () => {
  const parser = new PartialJson()
  parser.push('{"list": [1, 2')
  const before = parser.value()
  parser.push('3, 4], "more": true}')
  expect(before).toEqual({ list: [1, 2] })
  expect(parser.value()).toEqual({ list: [1, 23, 4], more: true })
})

test('__proto__ sets no prototype', () => {
  const value = parsePartialJson('{"__proto__": {"isAdmin": true}, "a": {"__proto__": 1')
  expect(value).toEqual({ a: {} })
  expect((value as { isAdmin?: boolean }).isAdmin).toBeUndefined()
})

test('a megabyte in small pieces, looked at after each, is not read again and again', () => {
  const piece = 'x'.repeat(20)
  const parser = new PartialJson()
  parser.push('{"text": "')
  const start = processorMs()
  for (let n = 0; n < 50_000; n++) {
    parser.push(piece)
    parser.value()
  }
  // Takes some 50 ms; reading from the start each time would take minutes.
  expect(processorMs() - start).toBeLessThan(5_000)
  expect(parser.value()).toEqual({ text: piece.repeat(50_000) })
})

test('UPP-159 UPP-108 a key named __proto__ never becomes a prototype, at any prefix', () => {
  const text = '{"a":{"__proto__":{"x":1},"b":[{"__proto__":{"x":2}}]},"__proto__":{"x":3},"c":4}'
  const check = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return
    expect([Object.prototype, Array.prototype]).toContain(Object.getPrototypeOf(value))
    expect((value as { x?: unknown }).x).toBeUndefined()
    Object.values(value).forEach(check)
  }
  for (let end = 1; end <= text.length; end++) check(parsePartialJson(text.slice(0, end)))
  expect(parsePartialJson(text)).toEqual({ a: { b: [{}] }, c: 4 })
})

test('UPP-108 every escape that JSON has is read, whole and at every prefix', () => {
  const text = '{"a":"\\" \\\\ \\/ \\b \\f \\n \\r \\t \\u0041\\uD83D\\uDC4B\\u00e9"}'
  expect(parsePartialJson(text)).toEqual(JSON.parse(text))
  const whole = (JSON.parse(text) as { a: string }).a
  for (let end = 6; end < text.length; end++) {
    const { a } = parsePartialJson(text.slice(0, end)) as { a: string }
    expect(whole.startsWith(a), text.slice(0, end)).toBe(true)
  }
})
