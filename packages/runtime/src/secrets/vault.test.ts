import fc from 'fast-check'
import { expect, test } from 'vitest'
import { SkeinError } from '@skein/base'
import { aesVault } from './vault.ts'

const key = new Uint8Array(32).fill(7)
const vault = aesVault({ key })
const canary = 'canary-6b1f-secret'

test('what is sealed opens again, and looks different each time', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), fc.string(), (secret, context) => {
      const sealed = vault.seal(secret, context)
      expect(sealed).toMatch(/^v1\.[A-Za-z0-9_-]+$/)
      expect(vault.open(sealed, context)).toBe(secret)
      expect(vault.seal(secret, context)).not.toBe(sealed)
    }),
    { numRuns: process.env['SKEIN_DEEP'] ? 2_000 : 100 },
  )
  expect(vault.open(vault.seal('\ufeffx', 'c'), 'c')).toBe('\ufeffx')
})

test('the same random bytes give the same text', () => {
  const fixed = () => aesVault({ key, random: (size) => new Uint8Array(size) }).seal('x', 'c')
  expect(fixed()).toBe(fixed())
})

test.each([
  ['another key', () => aesVault({ key: new Uint8Array(32) }).open(sealed(), 'thread/NAME')],
  ['another place', () => vault.open(sealed(), 'thread/OTHER')],
  ['a changed text', () => vault.open(flipped(sealed()), 'thread/NAME')],
  ['a cut text', () => vault.open(sealed().slice(0, 20), 'thread/NAME')],
  ['no text of ours', () => vault.open(canary, 'thread/NAME')],
  ['another format', () => vault.open(sealed().replace('v1.', 'v2.'), 'thread/NAME')],
])('%s opens nothing and tells nothing', (_title, open) => {
  const error = caught(open)
  expect(error).toMatchObject({ name: 'RuntimeError', code: 'ENV_INVALID' })
  expect(`${error.stack} ${JSON.stringify(error)} ${String(error.cause)}`).not.toContain(canary)
})

test('every changed character is noticed', () => {
  const text = sealed()
  for (let i = 3; i < text.length; i++) {
    const other = text.slice(0, i) + (text[i] === 'A' ? 'B' : 'A') + text.slice(i + 1)
    expect(() => vault.open(other, 'thread/NAME')).toThrow('cannot be opened')
  }
})

test('a key of another length and text that is none are refused', () => {
  expect(caught(() => aesVault({ key: new Uint8Array(16) }))).toMatchObject({ code: 'ENV_INVALID' })
  expect(caught(() => vault.seal('\ud800', 'c'))).toMatchObject({ code: 'ENV_INVALID' })
})

function sealed(): string {
  return vault.seal(canary, 'thread/NAME')
}

function flipped(text: string): string {
  return text.slice(0, -3) + (text.at(-3) === 'A' ? 'B' : 'A') + text.slice(-2)
}

function caught(run: () => unknown): SkeinError {
  try {
    run()
  } catch (error) {
    if (SkeinError.is(error)) return error
    throw error
  }
  throw new Error('nothing was thrown')
}
