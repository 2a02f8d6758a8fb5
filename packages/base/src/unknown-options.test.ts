import { expect, test } from 'vitest'
import { unknownOptions } from './unknown-options.ts'

const names = { known: ['temperature', 'stop'], renamed: { stopSequences: 'stop' } }

test('names options that do not exist, with the renamed or the nearest one', () => {
  expect(unknownOptions({ temperature: 1, stop: 'x' }, names)).toBeUndefined()
  expect(unknownOptions({ temprature: 1, stopSequences: ['x'], colour: 1 }, names)).toBe(
    'temprature (did you mean temperature?), stopSequences (use stop), colour',
  )
})

test('an option without a value is absent, and inherited names are no options', () => {
  expect(unknownOptions({ colour: undefined }, names)).toBeUndefined()
  expect(unknownOptions({ toString: 1, constructor: 2 }, names)).toBe('toString, constructor')
})
