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
 * because platforms differ in what they accept: white space, both alphabets at once, stray bits at the end,
 * and in Node even characters beyond Latin-1.
 */
function decode(text: string, alphabet: Alphabet): Uint8Array<ArrayBuffer> {
  const native = Uint8Array as NativeFromBase64
  let bytes: Uint8Array<ArrayBuffer> | undefined
  if (native.fromBase64) {
    try {
      bytes = native.fromBase64(text, { alphabet })
    } catch {
      // The native SyntaxError is ignored: the error thrown below is the same on every platform.
    }
  } else {
    const padding = text.endsWith('==') ? 2 : text.endsWith('=') ? 1 : 0
    const length = Math.floor(((text.length - padding) * 3) / 4)
    if (typeof Buffer === 'function') {
      bytes = new Uint8Array(length)
      Buffer.from(bytes.buffer).write(text, alphabet)
    } else bytes = decodePortable(text, length, alphabet === 'base64url')
  }
  if (bytes !== undefined && encode(bytes, alphabet) === text) return bytes
  // The error does not contain the text, because it may be a key or a token.
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

const common = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789'
const PADDING = 61

/**
 * Encodes base64 on platforms that have neither `toBase64` nor `Buffer`; base64url is written without
 * padding.
 */
function encodePortable(bytes: Uint8Array, isUrl: boolean): string {
  const alphabet = new TextEncoder().encode(common + (isUrl ? '-_' : '+/'))
  const text = new Uint8Array(Math.ceil(bytes.length / 3) * 4).fill(PADDING)
  let at = 0
  for (let i = 0; i < bytes.length; i += 3) {
    const group = (bytes[i]! << 16) | ((bytes[i + 1] ?? 0) << 8) | (bytes[i + 2] ?? 0)
    text[at++] = alphabet[group >> 18]!
    text[at++] = alphabet[(group >> 12) & 63]!
    if (i + 1 < bytes.length) text[at++] = alphabet[(group >> 6) & 63]!
    if (i + 2 < bytes.length) text[at++] = alphabet[group & 63]!
  }
  return new TextDecoder().decode(isUrl ? text.subarray(0, at) : text)
}

/**
 * Decodes a base64 text to `length` bytes, without checking it. Characters outside the alphabet are read as
 * zero bits; the caller detects such characters, because it encodes the bytes again and compares the texts.
 */
function decodePortable(text: string, length: number, isUrl: boolean): Uint8Array<ArrayBuffer> {
  const values = new Uint8Array(128)
  for (const [value, character] of [...common, ...(isUrl ? '-_' : '+/')].entries()) {
    values[character.charCodeAt(0)] = value
  }
  const bytes = new Uint8Array(length)
  for (let i = 0, at = 0, bits = 0; at < length; i++) {
    bits = (bits << 6) | (values[text.charCodeAt(i)] ?? 0)
    if (i % 4 > 0) bytes[at++] = bits >> (6 - 2 * (i % 4))
  }
  return bytes
}
