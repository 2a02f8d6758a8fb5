import fc from 'fast-check'
import { expect, test } from 'vitest'
import { redactSecrets, secretForms } from '@skein/base'
import { createRedactor } from './redactor.ts'

const runs = { numRuns: process.env['SKEIN_DEEP'] ? 5_000 : 200 }
const secret = 'sk-a/b+c d"é\\~x'
const hex = (text: string) => Buffer.from(text).toString('hex')

/** A letter of the mark would let `[redacted]` itself look like a secret. */
const secretText = fc.string({ unit: fc.constantFrom(...'xyzXYZ019-_+/ "\\é'), minLength: 1 })

test.each([
  ['as it is', secret],
  ['JSON-escaped', JSON.stringify(secret).slice(1, -1)],
  ['in a URL', encodeURIComponent(secret)],
  ['in base64', Buffer.from(secret).toString('base64')],
  ['in base64url', Buffer.from(secret).toString('base64url')],
  ['in hex', hex(secret)],
  ['in hex with capitals', hex(secret).toUpperCase()],
])('a secret is gone %s', (_title, form) => {
  expect(createRedactor(['other-secret', secret]).text(`<${form}>`)).toBe('<[redacted]>')
})

test('in base64 the bytes before it do not matter', () => {
  const key = 'correct-horse-battery'
  for (const user of ['', 'a', 'ab', 'abc']) {
    const header = Buffer.from(`${user}:${key}`).toString('base64')
    expect(createRedactor([key]).text(header)).toContain('[redacted]')
  }
})

test('secrets shorter than four characters are not searched', () => {
  const redactor = createRedactor(['', 'a', 'cat', ' cat\n'])
  expect(redactor.text('the cat')).toBe('the cat')
  const value = { a: ['cat'] }
  expect(redactor.json(value)).toBe(value)
  expect(redactor.stream().push('the cat')).toBe('the cat')
})

test('what overlaps or touches becomes one mark', () => {
  expect(createRedactor(['abcd', 'cdef']).text('xabcdefx')).toBe('x[redacted]x')
  expect(createRedactor(['abcdef', 'bcde']).text('xabcdefx')).toBe('x[redacted]x')
  expect(createRedactor(['wxyz']).text('wxyzwxyz!')).toBe('[redacted]!')
})

test('a secret within the beginning of another is found', () => {
  const redactor = createRedactor(['wxyz', 'aawxyzbb'])
  expect(redactor.text('aawxyzcc')).toBe('aa[redacted]cc')
  expect(inChunks(redactor.stream(), 'aawxyzcc', [1])).toBe('aa[redacted]cc')
  expect(redactor.text('aawxyzbb')).toBe('[redacted]')
})

test('the tail of a marked secret that was held back does not come later', () => {
  const stream = createRedactor(['vwxyz', 'yzabc']).stream()
  expect(stream.push('vwxyz')).toBe('[redacted]')
  expect(stream.push('! vwxyz?')).toBe('! [redacted]?')
})

test('no form of a secret survives, in any chunking', () => {
  fc.assert(
    fc.property(
      fc.array(secretText, { minLength: 1, maxLength: 5 }),
      fc.array(fc.oneof(fc.nat(200), secretText), { maxLength: 12 }),
      fc.array(fc.integer({ min: 1, max: 9 })),
      (secrets, pieces, sizes) => {
        const forms = secrets.flatMap((one) => [...secretForms(one)])
        const text = pieces
          .map((piece) => (typeof piece === 'string' ? piece : (forms[piece % forms.length] ?? '')))
          .join('')
        const redactor = createRedactor(secrets)
        const clean = redactor.text(text)
        for (const form of forms) expect(clean).not.toContain(form)
        expect(inChunks(redactor.stream(), text, sizes)).toBe(clean)
      },
    ),
    runs,
  )
})

test('secrets that overlap in every way are found as the plain search finds them', () => {
  const word = (minLength: number, maxLength: number) =>
    fc.string({ unit: fc.constantFrom('x', 'y'), minLength, maxLength })
  // The plain search marks neighbours one by one.
  const asOne = (text: string) => text.replace(/(\[redacted\])+/g, '[redacted]')
  fc.assert(
    fc.property(
      fc.array(word(4, 7), { minLength: 1, maxLength: 4 }),
      fc.array(fc.oneof(word(1, 20), fc.constant('-')), { maxLength: 8 }),
      fc.array(fc.integer({ min: 1, max: 9 })),
      (secrets, pieces, sizes) => {
        const text = pieces.join('')
        const redactor = createRedactor(secrets)
        const expected = asOne(redactSecrets(text, secrets))
        expect(redactor.text(text)).toBe(expected)
        expect(inChunks(redactor.stream(), text, sizes)).toBe(expected)
      },
    ),
    runs,
  )
})

test('a text without a secret is not changed, and agrees with the plain search', () => {
  fc.assert(
    fc.property(
      fc.array(secretText, { maxLength: 4 }),
      fc.string({ unit: 'grapheme', maxLength: 200 }),
      fc.array(fc.integer({ min: 1, max: 9 })),
      (secrets, text, sizes) => {
        fc.pre(redactSecrets(text, secrets) === text)
        fc.pre(!secrets.some((one) => text.toLowerCase().includes(hex(one.trim()))))
        const redactor = createRedactor(secrets)
        expect(redactor.text(text)).toBe(text)
        expect(inChunks(redactor.stream(), text, sizes)).toBe(text)
      },
    ),
    runs,
  )
})

test('a stream holds back what may be the beginning of a secret, and nothing else', () => {
  const stream = createRedactor(['swordfish']).stream()
  expect(stream.push('the sword')).toBe('the ')
  expect(stream.push(' and')).toBe('sword and')
  expect(stream.push(' the swordfis')).toBe(' the ')
  expect(stream.push('h!')).toBe('[redacted]!')
  expect(stream.push(' swor')).toBe(' ')
  expect(stream.end()).toBe('swor')
})

test('a complete secret is marked at once when nothing longer can follow', () => {
  const stream = createRedactor(['0123 4567']).stream()
  expect(stream.push('0123 4567')).toBe('[redacted]')
})

test('json keeps identity where nothing is found, and copies only the way to what is', () => {
  const redactor = createRedactor([secret])
  const value = { a: { b: ['x', 1, null] }, c: { d: `key ${secret}`, [secret]: true } }
  const clean = redactor.json(value)
  expect(clean).toEqual({
    a: { b: ['x', 1, null] },
    c: { d: 'key [redacted]', '[redacted]': true },
  })
  expect(clean.a).toBe(value.a)
  expect(redactor.json(clean)).toBe(clean)
  expect(redactor.json(undefined)).toBe(undefined)
})

test('an object with a JSON of its own is looked into', () => {
  const redactor = createRedactor([secret])
  const found = {
    held: new (class Held {
      toJSON() {
        return { text: secret }
      }
    })(),
  }
  expect(redactor.json(found)).toEqual({ held: { text: '[redacted]' } })
  const date = { at: new Date(0) }
  expect(redactor.json(date)).toBe(date)
})

test('a key named __proto__ stays a key', () => {
  const value: unknown = JSON.parse(`{"__proto__": ${JSON.stringify(secret)}}`)
  expect(JSON.stringify(createRedactor([secret]).json(value))).toBe('{"__proto__":"[redacted]"}')
})

function inChunks(
  stream: { push(text: string): string; end(): string },
  text: string,
  sizes: readonly number[],
): string {
  let result = ''
  for (let at = 0, turn = 0; at < text.length; turn++) {
    const size = sizes[turn % sizes.length] ?? 1
    result += stream.push(text.slice(at, at + size))
    at += size
  }
  return result + stream.end()
}
