import fc from 'fast-check'
import { expect, test } from 'vitest'
import { runs } from '../../test/wires/arbitrary-message.ts'
import { unwrapValue } from './unwrap-value.ts'

function unwrap(text: string, cuts: readonly number[]): string {
  const unwrapper = unwrapValue()
  const places = cuts.map((cut) => cut % (text.length + 1)).sort((a, b) => a - b)
  let start = 0
  let result = ''
  for (const place of places) result += unwrapper.push(text.slice(start, (start = place)))
  return result + unwrapper.push(text.slice(start)) + unwrapper.end()
}

const cuts = fc.array(fc.nat(), { maxLength: 6 })

test('a wrapped value comes out as it stands, wherever the stream is cut', () => {
  const space = fc.constantFrom('', ' ', '\n  ')
  fc.assert(
    fc.property(fc.json(), space, space, cuts, (value, before, after, at) => {
      const json = value.trim()
      const text = `${before}{${before}"value"${after}:${before}${json}${after}}${before}`
      expect(unwrap(text, at).trim()).toBe(json)
    }),
    runs,
  )
})

test('text that is not wrapped passes unchanged', () => {
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.json()), cuts, (text, at) => {
      fc.pre(!/^\s*\{\s*"value"\s*:/.test(text))
      expect(unwrap(text, at)).toBe(text)
    }),
    runs,
  )
})

test('a cut-off answer keeps what came', () => {
  expect(unwrap('{"value":[1,{"a":2}', [])).toBe('[1,{"a":2')
  expect(unwrap('{"value":"ab', [])).toBe('"ab')
  expect(unwrap('{"val', [])).toBe('{"val')
})

test('white space without end costs linear time', () => {
  const unwrapper = unwrapValue()
  // CPU time, which other programs on the machine do not change.
  const start = process.cpuUsage()
  unwrapper.push('{"value":[')
  for (let i = 0; i < 200_000; i++) unwrapper.push('     ')
  unwrapper.push('}')
  for (let i = 0; i < 200_000; i++) unwrapper.push('     ')
  const { user, system } = process.cpuUsage(start)
  expect((user + system) / 1000).toBeLessThan(500)
})
