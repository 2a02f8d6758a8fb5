import { expect, test, vi } from 'vitest'
import { messageOf, SkeinError } from '@skein/base'

class LimitError extends SkeinError {}

test('carries code, hint, message, cause and the name of its class', () => {
  const cause = new Error('inner')
  const error = new LimitError('Too many.', { code: 'TOO_MANY', hint: 'Send fewer.', cause })
  expect(error).toBeInstanceOf(Error)
  expect(error).toMatchObject({ name: 'LimitError', code: 'TOO_MANY', hint: 'Send fewer.' })
  expect(error.message).toBe('Too many.')
  expect(error.cause).toBe(cause)
})

test('without hint or cause there is neither', () => {
  const error = new SkeinError('x', { code: 'X' })
  expect(error.hint).toBeUndefined()
  expect('cause' in error).toBe(false)
})

test('JSON has name, code, message and hint, but no stack and no cause', () => {
  const error = new SkeinError('x', { code: 'X', hint: 'h', cause: new Error('sk-canary') })
  expect(JSON.parse(JSON.stringify(error))).toEqual({
    name: 'SkeinError',
    code: 'X',
    message: 'x',
    hint: 'h',
  })
  expect(new SkeinError('x', { code: 'X' }).toJSON()).toStrictEqual({
    name: 'SkeinError',
    code: 'X',
    message: 'x',
  })
})

test('is() knows errors of another copy of the package, and nothing else', async () => {
  vi.resetModules()
  const copy = await import('./error.ts')
  const foreign = new copy.SkeinError('x', { code: 'X' })
  expect(copy.SkeinError).not.toBe(SkeinError)
  expect(foreign).not.toBeInstanceOf(SkeinError)
  expect(SkeinError.is(foreign)).toBe(true)
  expect(SkeinError.is(new LimitError('x', { code: 'X' }))).toBe(true)
  for (const other of [new Error('x'), { code: 'X' }, 'x', null, undefined]) {
    expect(SkeinError.is(other)).toBe(false)
  }
})

test('anything that is thrown has a text, and objects are not quoted', () => {
  expect(messageOf(new TypeError('bad'))).toBe('bad')
  expect(messageOf(new TypeError())).toBe('TypeError')
  expect(messageOf('plain')).toBe('plain')
  expect(messageOf({ key: 'secret' })).toBe('An object that is not an error was thrown.')
})
