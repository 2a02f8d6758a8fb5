import fc from 'fast-check'
import { afterEach, describe, expect, test } from 'vitest'
import { decodeBase64, decodeBase64Url, encodeBase64, encodeBase64Url } from '@skein/base'

const runs = { numRuns: process.env['SKEIN_DEEP'] ? 20_000 : 300, seed: 4648 }
const invalid = expect.objectContaining({ code: 'BASE64_INVALID' })

/** How each platform is entered: with Buffer, with the methods of ES2026, with neither. */
const platforms: Record<string, () => void> = {
  Buffer: () => stub({ fromBase64: undefined, toBase64: undefined, Buffer }),
  native: () => stub({ fromBase64, toBase64, Buffer: undefined }),
  portable: () => stub({ fromBase64: undefined, toBase64: undefined, Buffer: undefined }),
}

let restore = () => {}
afterEach(() => restore())

function stub(platform: { fromBase64: unknown; toBase64: unknown; Buffer: unknown }): void {
  const undo = [
    define(Uint8Array, 'fromBase64', platform.fromBase64),
    define(Uint8Array.prototype, 'toBase64', platform.toBase64),
    define(globalThis, 'Buffer', platform.Buffer),
  ]
  restore = () => undo.forEach((each) => each())
}

/** Sets a property and returns how to put back what was there. */
function define(owner: object, name: string, value: unknown): () => void {
  const before = Object.getOwnPropertyDescriptor(owner, name)
  Object.defineProperty(owner, name, { value, configurable: true, writable: true })
  return () =>
    before ? Object.defineProperty(owner, name, before) : Reflect.deleteProperty(owner, name)
}

const { from } = Buffer
type Alphabet = 'base64' | 'base64url'

/** As lenient about white space, padding and stray bits as the standard's default. */
function fromBase64(text: string, { alphabet }: { alphabet: Alphabet }): Uint8Array {
  const allowed = alphabet === 'base64' ? /^[a-z0-9+/\s]*=*\s*$/i : /^[\w\s-]*=*\s*$/
  if (!allowed.test(text)) throw new SyntaxError(`unexpected character in ${text}`)
  return new Uint8Array(from(text, alphabet))
}

function toBase64(this: Uint8Array, options: { alphabet: Alphabet; omitPadding: boolean }): string {
  const text = from(this).toString('base64')
  const padded =
    options.alphabet === 'base64' ? text : text.replaceAll('+', '-').replaceAll('/', '_')
  return options.omitPadding ? padded.replace(/=+$/, '') : padded
}

describe.each(Object.keys(platforms))('on a platform with %s', (platform) => {
  const enter = platforms[platform]!

  test('RFC 4648 §10', () => {
    enter()
    const vectors = {
      '': '',
      f: 'Zg==',
      fo: 'Zm8=',
      foo: 'Zm9v',
      foob: 'Zm9vYg==',
      fooba: 'Zm9vYmE=',
      foobar: 'Zm9vYmFy',
    }
    for (const [text, base64] of Object.entries(vectors)) {
      const bytes = new TextEncoder().encode(text)
      expect(encodeBase64(bytes)).toBe(base64)
      expect(encodeBase64Url(bytes)).toBe(base64.replace(/=+$/, ''))
      expect([...decodeBase64(base64)]).toEqual([...bytes])
      expect([...decodeBase64Url(base64.replace(/=+$/, ''))]).toEqual([...bytes])
    }
  })

  test('the alphabets differ in two characters', () => {
    enter()
    const bytes = Uint8Array.of(0xfb, 0xef, 0xff)
    expect(encodeBase64(bytes)).toBe('++//')
    expect(encodeBase64Url(bytes)).toBe('--__')
    expect([...decodeBase64('++//')]).toEqual([...bytes])
    expect([...decodeBase64Url('--__')]).toEqual([...bytes])
  })

  test('bytes come back, from a view into a larger buffer too', () => {
    enter()
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 80 }), fc.nat(8), (bytes, offset) => {
        const view = bytes.subarray(Math.min(offset, bytes.length))
        expect([...decodeBase64(encodeBase64(view))]).toEqual([...view])
        expect([...decodeBase64Url(encodeBase64Url(view))]).toEqual([...view])
      }),
      runs,
    )
  })

  test.each([
    'Zg', // not padded
    'Zg=',
    'Zg===',
    'Z',
    'Zh==', // stray bits
    'Zm9=',
    'Zm9v\n',
    ' Zm9v',
    'Zm 9v',
    'Zm9v====',
    'Zg==Zg==',
    '=',
    '====',
    'Zm9*',
    '--__',
    '\u015am9v', // Z and 0x100: Node takes only the low byte
    'Zm9\u2076',
  ])('base64 refuses %j', (text) => {
    enter()
    expect(() => decodeBase64(text)).toThrow(invalid)
  })

  test.each(['Zg==', 'Z', 'Zh', 'Zm9', '++//', 'Zm9v\n', 'Zm9v=', '\u015am9v'])(
    'base64url refuses %j',
    (text) => {
      enter()
      expect(() => decodeBase64Url(text)).toThrow(invalid)
    },
  )

  test('a text is taken only if it is what its bytes encode to', () => {
    enter()
    const unit = fc.constantFrom(...'AZaz09+/-_= \n\u0141')
    fc.assert(
      fc.property(fc.string({ unit, maxLength: 9 }), (text) => {
        const canonical = (alphabet: 'base64' | 'base64url') => text === byBits(text, alphabet)
        expect(accepts(decodeBase64, text)).toBe(canonical('base64'))
        expect(accepts(decodeBase64Url, text)).toBe(canonical('base64url'))
      }),
      runs,
    )
  })
})

test('the bytes have a buffer of their own', () => {
  const bytes = decodeBase64('Zm9v')
  expect(bytes.constructor).toBe(Uint8Array)
  expect(bytes.buffer.byteLength).toBe(3)
})

test('the error does not repeat the text, which may be a key', () => {
  expect(() => decodeBase64('sk-canary')).toThrow(
    expect.objectContaining({ message: expect.not.stringContaining('canary') }),
  )
})

function accepts(decode: (text: string) => Uint8Array, text: string): boolean {
  try {
    decode(text)
    return true
  } catch {
    return false
  }
}

/** The text again by way of its bits, written without sharing anything with the code under test. */
function byBits(text: string, kind: 'base64' | 'base64url'): string | undefined {
  const alphabet = `ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789${kind === 'base64' ? '+/' : '-_'}`
  const body = text.replace(/=+$/, '')
  if ([...body].some((character) => !alphabet.includes(character))) return undefined
  const bits = [...body]
    .map((character) => alphabet.indexOf(character).toString(2).padStart(6, '0'))
    .join('')
  const whole = bits.slice(0, bits.length - (bits.length % 8))
  const groups = whole.match(/.{1,6}/g) ?? []
  const again = groups.map((group) => alphabet[Number.parseInt(group.padEnd(6, '0'), 2)]).join('')
  return kind === 'base64' ? again.padEnd(Math.ceil(again.length / 4) * 4, '=') : again
}
