import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { encodeBase64, encodeBase64Url, redactSecrets } from '@skein/base'
import { processorMs } from '../../../conformance/support/processor-time.ts'

const bytes = (text: string) => new TextEncoder().encode(text)
const secret = 'sk-a/b+c d"é\\~x'

describe('a secret is gone in every form', () => {
  test.each([
    ['as it is', secret],
    ['in a URL', encodeURIComponent(secret)],
    [
      'in a URL with small hex digits',
      encodeURIComponent(secret).replace(/%../g, (hex) => hex.toLowerCase()),
    ],
    ['in a query', new URLSearchParams({ key: secret }).toString().slice(4)],
    ['in JSON', JSON.stringify(secret).slice(1, -1)],
    ['in base64', encodeBase64(bytes(secret))],
    ['in base64 without padding', encodeBase64(bytes(secret)).replace(/=+$/, '')],
    ['in base64url', encodeBase64Url(bytes(secret))],
  ])('%s', (_title, form) => {
    expect(redactSecrets(`<${form}|${form}>`, [secret])).toBe('<[redacted]|[redacted]>')
  })

  test('inside Basic credentials, wherever its bytes fall', () => {
    for (const user of ['', 'a', 'ab', 'abc', 'abcd']) {
      for (const tail of ['', '/', '//', '///']) {
        const key = 'correct-horse-battery'
        const header = `Basic ${encodeBase64(bytes(`${user}:${key}${tail}`))}`
        const [before, after] = redactSecrets(header, [key]).split('[redacted]')
        // Beside the mark stand the bytes of others, and at most a few bits of the secret.
        const others = (length: number) => Math.ceil((length * 8) / 6)
        expect(before!.length).toBeLessThanOrEqual('Basic '.length + others(user.length + 1))
        expect(after!.replace(/=+$/, '').length).toBeLessThanOrEqual(1 + others(tail.length))
      }
    }
  })
})

test('a text without secrets comes back as it is', () => {
  expect(redactSecrets('nothing here', ['sk-secret'])).toBe('nothing here')
  expect(redactSecrets('nothing here', [])).toBe('nothing here')
  expect(redactSecrets('', ['sk-secret'])).toBe('')
})

test('secrets shorter than four characters are ignored, white space round one too', () => {
  expect(redactSecrets('the cat', ['', 'a', 'cat', ' cat\n'])).toBe('the cat')
  expect(redactSecrets('key=abcd', ['abcd\n'])).toBe('key=[redacted]')
})

test('overlapping and touching secrets leave nothing behind', () => {
  expect(redactSecrets('xabcdefx', ['abcd', 'cdef'])).toBe('x[redacted]x')
  expect(redactSecrets('xabcdefx', ['abcdef', 'bcde'])).toBe('x[redacted]x')
  expect(redactSecrets('aaaaaaaaa', ['aaaa'])).toBe('[redacted]')
  expect(redactSecrets('abababab!', ['abab'])).toBe('[redacted]!')
})

test('secrets are text, not patterns', () => {
  expect(redactSecrets('a.*b axxb $& [x]', ['a.*b'])).toBe('[redacted] axxb $& [x]')
})

test('a lone surrogate in a secret is no reason to throw', () => {
  expect(redactSecrets('key \ud800abc.', ['\ud800abc'])).toBe('key [redacted].')
})

test('no secret remains, and what is not secret stays in its order', () => {
  const part = fc.string({ unit: fc.constantFrom(...'ab"\\/% é'), minLength: 4, maxLength: 8 })
  fc.assert(
    fc.property(fc.array(part, { maxLength: 4 }), fc.array(part), (secrets, texts) => {
      const real = secrets.map((each) => each.trim()).filter((each) => each.length >= 4)
      const text = [...texts, ...real, ...real.map((each) => JSON.stringify(each))].join('|')
      const pieces = redactSecrets(text, secrets).split('[redacted]')
      for (const each of real) expect(pieces.some((piece) => piece.includes(each))).toBe(false)
      let at = 0
      for (const piece of pieces) {
        at = text.indexOf(piece, at)
        expect(at).toBeGreaterThanOrEqual(0)
        at += piece.length
      }
    }),
    { numRuns: process.env['SKEIN_DEEP'] ? 10_000 : 300, seed: 3 },
  )
})

test('a long text of one letter takes time in proportion', () => {
  const text = 'a'.repeat(1_000_000)
  const start = processorMs()
  expect(redactSecrets(text, ['a'.repeat(1000)])).toBe('[redacted]')
  expect(redactSecrets(text, ['a'.repeat(500) + 'b'])).toBe(text)
  expect(processorMs() - start).toBeLessThan(1500)
})
