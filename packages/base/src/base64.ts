import { SkeinError } from './error.ts'

/** Encodes bytes as base64 with padding (RFC 4648 §4). */
export function encodeBase64(bytes: Uint8Array): string {
  return encode(bytes, 'base64')
}

/**
 * Decodes base64. Strict: the text must be padded, without white space and without stray bits (bits other
 * than zero after the last byte), so that each sequence of bytes has exactly one accepted text.
 */
export function decodeBase64(text: string): Uint8Array<ArrayBuffer> {
  return decode(text, 'base64')
}

/** Encodes bytes as base64url without padding (RFC 4648 §5, as in JWS). */
export function encodeBase64Url(bytes: Uint8Array): string {
  return encode(bytes, 'base64url')
}

/** Decodes base64url. Strict: the text must be unpadded, without white space and without stray bits. */
export function decodeBase64Url(text: string): Uint8Array<ArrayBuffer> {
  return decode(text, 'base64url')
}

type Alphabet = 'base64' | 'base64url'

/** The method `toBase64` of byte arrays in ES2026, which not every platform has. */
interface NativeToBase64 {
  toBase64?(options: { alphabet: Alphabet; omitPadding: boolean }): string
}
interface NativeFromBase64 {
  fromBase64?(text: string, options: { alphabet: Alphabet }): Uint8Array<ArrayBuffer>
}

function encode(bytes: Uint8Array, alphabet: Alphabet): string {
  const native = bytes as NativeToBase64
  if (native.toBase64) return native.toBase64({ alphabet, omitPadding: alphabet === 'base64url' })
  if (typeof Buffer === 'function') {
    return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString(alphabet)
  }
  return encodePortable(bytes, alphabet === 'base64url')
}

/**
 * Decodes a text and checks it by encoding the bytes again and comparing the two texts. The check is needed
 * because platforms differ in what they accept: white space, both alphabets mixed, stray bits at the end,
 * and in Node even characters beyond Latin-1.
 */
function decode(text: string, alphabet: Alphabet): Uint8Array<ArrayBuffer> {
  const native = Uint8Array as NativeFromBase64
  let bytes: Uint8Array<ArrayBuffer> | undefined
  try {
    if (native.fromBase64) bytes = native.fromBase64(text, { alphabet })
    else if (typeof Buffer === 'function') {
      const padding = text.endsWith('==') ? 2 : text.endsWith('=') ? 1 : 0
      bytes = new Uint8Array(Math.floor(((text.length - padding) * 3) / 4))
      Buffer.from(bytes.buffer).write(text, alphabet)
    } else {
      const binary = atob(text.replaceAll('-', '+').replaceAll('_', '/'))
      bytes = Uint8Array.from(binary, (character) => character.charCodeAt(0))
    }
  } catch {
    // The platform's own error is ignored: the error thrown below is the same on every platform.
  }
  if (bytes !== undefined && encode(bytes, alphabet) === text) return bytes
  // The error does not contain the text, because the text may be a key or a token.
  throw new SkeinError(
    `The text is not valid ${alphabet}, or not the only way to write its bytes.`,
    {
      code: 'BASE64_INVALID',
      hint:
        alphabet === 'base64'
          ? 'Expected A–Z a–z 0–9 + / padded with = to a multiple of 4; for - and _ use decodeBase64Url.'
          : 'Expected A–Z a–z 0–9 - _ without padding; for + and / use decodeBase64.',
    },
  )
}

/** The most bytes that one call of `String.fromCharCode` is given; engines limit its arguments. */
const MAX_ARGUMENTS = 8192

/** Encodes base64 on platforms that have neither `toBase64` nor `Buffer`. */
function encodePortable(bytes: Uint8Array, isUrl: boolean): string {
  let binary = ''
  for (let i = 0; i < bytes.length; i += MAX_ARGUMENTS)
    binary += String.fromCharCode(...bytes.subarray(i, i + MAX_ARGUMENTS))
  const text = btoa(binary)
  return isUrl
    ? text
        .replaceAll('+', '-')
        .replaceAll('/', '_')
        .replace(/={1,2}$/, '')
    : text
}
