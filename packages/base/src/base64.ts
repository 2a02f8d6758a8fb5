import { decodePortable, encodePortable } from './base64-portable.ts'
import { SkeinError } from './error.ts'

/** Bytes as base64 with padding (RFC 4648 §4). */
export function encodeBase64(bytes: Uint8Array): string {
  return encode(bytes, 'base64')
}

/** Bytes of a base64 text. Strict: padded, no white space, no stray bits; so each byte string has one text. */
export function decodeBase64(text: string): Uint8Array<ArrayBuffer> {
  return decode(text, 'base64')
}

/** Bytes as base64url without padding (RFC 4648 §5, as in JWS). */
export function encodeBase64Url(bytes: Uint8Array): string {
  return encode(bytes, 'base64url')
}

/** Bytes of a base64url text. Strict: unpadded, no white space, no stray bits. */
export function decodeBase64Url(text: string): Uint8Array<ArrayBuffer> {
  return decode(text, 'base64url')
}

type Alphabet = 'base64' | 'base64url'

/** The ES2026 methods, where the platform has them. */
interface NativeBase64 {
  toBase64?(options: { alphabet: Alphabet; omitPadding: boolean }): string
}

function encode(bytes: Uint8Array, alphabet: Alphabet): string {
  const native = bytes as NativeBase64
  if (native.toBase64) return native.toBase64({ alphabet, omitPadding: alphabet === 'base64url' })
  if (typeof Buffer === 'function') {
    return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString(alphabet)
  }
  return encodePortable(bytes, alphabet === 'base64url')
}

function decode(text: string, alphabet: Alphabet): Uint8Array<ArrayBuffer> {
  const length = checkedLength(text, alphabet)
  const native = Uint8Array as {
    fromBase64?(text: string, options: object): Uint8Array<ArrayBuffer>
  }
  if (native.fromBase64) return native.fromBase64(text, { alphabet })
  if (typeof Buffer !== 'function') return decodePortable(text, length)
  const bytes = new Uint8Array(length)
  Buffer.from(bytes.buffer).write(text, alphabet)
  return bytes
}

const shapes = { base64: /^[A-Za-z0-9+/]*={0,2}$/, base64url: /^[A-Za-z0-9_-]*$/ }
/** The last characters that leave no stray bits, by how many characters stand in the last group. */
const lastOfTwo = /[AQgw]$/
const lastOfThree = /[AEIMQUYcgkosw048]$/

/** How many bytes the text stands for; throws unless it is the one right text for them. */
function checkedLength(text: string, alphabet: Alphabet): number {
  if (!shapes[alphabet].test(text))
    throw invalid(alphabet, 'has a character that does not belong there')
  if (alphabet === 'base64' && text.length % 4 !== 0)
    throw invalid(alphabet, 'is cut short or not padded')
  const body = text.endsWith('=') ? text.slice(0, text.indexOf('=')) : text
  const rest = body.length % 4
  if (rest === 1) throw invalid(alphabet, 'is cut short')
  if ((rest === 2 && !lastOfTwo.test(body)) || (rest === 3 && !lastOfThree.test(body))) {
    throw invalid(alphabet, 'has stray bits at its end')
  }
  return Math.floor((body.length * 3) / 4)
}

/** The text itself is not repeated: it may be a key or a token. */
function invalid(alphabet: Alphabet, what: string): SkeinError {
  return new SkeinError(`The ${alphabet} text ${what}.`, {
    code: 'BASE64_INVALID',
    hint:
      alphabet === 'base64'
        ? 'Expected A–Z a–z 0–9 + / with = padding; for - and _ use decodeBase64Url.'
        : 'Expected A–Z a–z 0–9 - _ without padding; for + and / use decodeBase64.',
  })
}
