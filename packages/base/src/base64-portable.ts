const common = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789'
const PADDING = 61

/** Base64 where the platform has neither `toBase64` nor `Buffer`; base64url is without padding. */
export function encodePortable(bytes: Uint8Array, isUrl: boolean): string {
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
 * The first `length` bytes a text stands for. Characters outside the alphabet count as zero bits:
 * the caller compares what the bytes encode to, and so needs no second check here.
 */
export function decodePortable(
  text: string,
  length: number,
  isUrl: boolean,
): Uint8Array<ArrayBuffer> {
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
