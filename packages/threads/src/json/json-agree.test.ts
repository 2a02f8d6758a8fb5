import { expect, test } from 'vitest'
import { agreesWithText } from './json-agree.ts'

function agrees(text: string, maxDepth = 10): boolean {
  return agreesWithText(text, JSON.parse(text), maxDepth)
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

test('text that JavaScript would print otherwise does not', () => {
  const texts = [
    '[18.0]',
    '[-0]',
    '[-0.0]',
    '[1e2]',
    '[1E-7]',
    '[0.10]',
    '[12345678901234567890]',
    '{"a":[1,{"b":2.50}]}',
    '{"a":1,"a":2}',
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
