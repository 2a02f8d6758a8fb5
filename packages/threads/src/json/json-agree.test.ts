import fc from 'fast-check'
import { expect, test } from 'vitest'
import { keepText } from './json-agree.ts'
import { parseJson } from './json-parse.ts'
import { stringifyJson } from './json-stringify.ts'

function agrees(text: string, maxDepth = 10): boolean {
  return keepText(text, JSON.parse(text), maxDepth)
}

test('text that prints again as it is agrees, whatever its white space and escapes', () => {
  const texts = [
    '{}',
    '[]',
    ' [ ] ',
    '{"a":1,"b":[-1,0,1.5,1e-7,1e+21,123456789012345],"c":{"d":null,"e":true,"f":false}}',
    '{\n  "a" : [ 1 , 2 ] ,\t"b" : { } \r\n}',
    '["\\"","\\\\","\\\\\\"","\\u0041","a\\nb","","x\\\\"]',
    '{"\\"":1,"\\\\":2,"a\\"b":"c","":0}',
    '{"2026-03-01":1,"01":2,"a":{"1.5":0}}',
  ]
  for (const text of texts) expect([text, agrees(text)]).toEqual([text, true])
})

test('the text of numbers that JavaScript would print otherwise is kept', () => {
  const texts = [
    '[18.0]',
    '[-0]',
    '[-0.0]',
    '[1e2]',
    '[1E-7]',
    '[0.10]',
    '[1e999]',
    '[12345678901234567890,9007199254740993]',
    '{"a":[1,{"b":2.50,"c":3.0}],"d":4.0}',
  ]
  for (const text of texts) {
    const value: unknown = JSON.parse(text)
    expect([text, keepText(text, value, 10), stringifyJson(value)]).toEqual([text, true, text])
  }
})

test('repeated keys and keys that JavaScript would move do not agree', () => {
  const texts = [
    '{"a":1,"a":2}',
    '{"a":18.0,"a":2}',
    '{"a":"xxx}","a":true}',
    '{"a":"xxx}","a":null}',
    '{"a":"xxxx}","a":false}',
    '{"a":[1],"a":5}',
    '{"a":1,"b":2,"a":3}',
    '{"b":1,"1":2}',
    '{"b":{"10":0,"9":0}}',
  ]
  for (const text of texts) expect([text, agrees(text)]).toEqual([text, false])
})

test('text nested deeper than allowed does not', () => {
  expect(agrees('[[[1]]]', 3)).toBe(true)
  expect(agrees('[[[1]]]', 2)).toBe(false)
  expect(agrees('{"a":{"b":[]}}', 3)).toBe(true)
  expect(agrees('{"a":{"b":[]}}', 2)).toBe(false)
})

/** JSON text with spaces, escapes, odd numbers and repeated keys, and what it is without spaces. */
interface Written {
  readonly text: string
  readonly compact: string
}

const space = fc.constantFrom('', '', '', ' ', '\n  ')
const token = fc.oneof(
  fc.constantFrom('true', 'false', 'null', '18.0', '-0', '1e3', '1E+2', '12345678901234567890'),
  fc.integer().map(String),
  fc.string({ unit: 'binary', maxLength: 40 }).map((text) => JSON.stringify(text)),
)
const { json } = fc.letrec<{ json: Written }>((tie) => ({
  json: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    token.map((text) => ({ text, compact: text })),
    fc.tuple(fc.array(tie('json'), { maxLength: 4 }), space).map(([items, gap]) => ({
      text: `[${gap}${items.map(({ text }) => text).join(`${gap},${gap}`)}${gap}]`,
      compact: `[${items.map(({ compact }) => compact).join(',')}]`,
    })),
    fc
      .tuple(
        fc.array(fc.tuple(fc.constantFrom('a', 'b"', 'cc:', '', '7', '10'), tie('json')), {
          maxLength: 4,
        }),
        space,
      )
      .map(([members, gap]) => {
        // The last value of a repeated key counts, at the place of its first.
        const last = new Map(members)
        return {
          text: `{${gap}${members
            .map(([key, { text }]) => `${JSON.stringify(key)}${gap}:${gap}${text}`)
            .join(`${gap},${gap}`)}${gap}}`,
          compact: `{${[...last].map(([key, { compact }]) => `${JSON.stringify(key)}:${compact}`).join(',')}}`,
        }
      }),
  ),
}))

test('every text is printed again as it was, apart from white space, escapes and repeated keys', () => {
  const wrapped = json.map(({ text, compact }) => ({ text: `[${text}]`, compact: `[${compact}]` }))
  fc.assert(
    fc.property(wrapped, ({ text, compact }) => {
      const { value, duplicates } = parseJson(text)
      expect(stringifyJson(value)).toBe(compact)
      expect(value).toEqual(JSON.parse(text))
      expect(keepText(text, JSON.parse(text), 10) && duplicates.length > 0).toBe(false)
    }),
    { numRuns: 2_000 },
  )
})

test('TP-52 a repeated key is found wherever it stands, and whatever stands between', () => {
  for (const text of [
    '{"x":1,"x":2,"version":"2"}',
    '{"a":"b","a":"bbbbbbbbbbb"}',
    '{"a":{"x":1,"x":2,"version":3}}',
    '[{"a":"","a":"x\\"y"}]',
    '{"a":[1],"a":"a longer text, with \\n an escape"}',
    '{"k":"1","k" : "22222222","last":0}',
    // At the distance of the last value's length stands a quote of another string.
    '{":":"}","x":"",":":"\\",\\"x\\":\\"a","abc":":"}',
    '{"y":":","x":"","y":"\\",\\"x\\":\\"a"}',
  ]) {
    expect(parseJson(text).duplicates, text).toHaveLength(1)
  }
  const key = fc.constantFrom('a', 'b', 'version', 'a"b', 'long key', '\\', '', ':', ',')
  const leaf = fc.oneof(
    fc.integer({ min: 0, max: 99 }),
    fc.string({ maxLength: 14 }),
    fc.constantFrom(null, true, '","a":"', '","a":"b', 'x"y', '\\', '', ':'),
  )
  const members = fc.array(fc.tuple(key, leaf), { maxLength: 5 })
  const print = (list: readonly (readonly [string, unknown])[]): string =>
    `{${list.map(([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)}`).join(',')}}`
  fc.assert(
    fc.property(members, members, (outer, inner) => {
      const text = `{"o":${print(outer)},"i":${print(inner)}}`
      const { value, duplicates } = parseJson(text)
      const repeated = (list: typeof outer): number =>
        list.length - new Set(list.map(([name]) => name)).size
      expect(duplicates).toHaveLength(repeated(outer) + repeated(inner))
      expect(value).toEqual(JSON.parse(text))
    }),
    { numRuns: 2000 },
  )
})
