import { runInNewContext } from 'node:vm'
import { expect, test } from 'vitest'
import { isObject, isPlainObject, tryParseJson } from '@skein/base'

class Point {}

test.each<[string, unknown]>([
  ['a literal', {}],
  ['parsed JSON', JSON.parse('{"a":1}')],
  ['no prototype', Object.create(null)],
  ['another realm', runInNewContext('({})')],
])('%s is a plain object', (_title, value) => {
  expect(isPlainObject(value)).toBe(true)
})

test.each<[string, unknown]>([
  ['null', null],
  ['an array', []],
  ['another array', runInNewContext('[]')],
  ['a function', () => 1],
  ['a class instance', new Point()],
  ['a Map', new Map()],
  ['a Date', new Date()],
  ['an object that inherits', Object.create({})],
  ['a string', 'x'],
  ['undefined', undefined],
])('%s is not', (_title, value) => {
  expect(isPlainObject(value)).toBe(false)
})

test('objects are what has named fields: instances too, lists and null not', () => {
  expect([{}, new Point(), [], null, 'a'].map(isObject)).toEqual([true, true, false, false, false])
})

test('text that is no JSON has no value', () => {
  expect(tryParseJson('{"a":1}')).toEqual({ a: 1 })
  expect(tryParseJson('{"a":')).toBeUndefined()
})
