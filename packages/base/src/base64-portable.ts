const common = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789'

/** Base64 where the platform has neither `toBase64` nor `Buffer`. */
export function encodePortable(bytes: Uint8Array, url: boolean): string {
  const alphabet = common + (url ? '-_' : '+/')
  let text = ''
  for (let i = 0; i < bytes.length; i += 3) {
    const group = (bytes[i]! << 16) | ((bytes[i + 1] ?? 0) << 8) | (bytes[i + 2] ?? 0)
    text += alphabet[group >> 18]! + alphabet[(group >> 12) & 63]!
    if (i + 1 < bytes.length) text += alphabet[(group >> 6) & 63]!
    if (i + 2 < bytes.length) text += alphabet[group & 63]!
  }
  return url ? text : text.padEnd(Math.ceil(text.length / 4) * 4, '=')
}

/** Reads either alphabet; the text was checked before. `length` is the number of bytes it stands for. */
export function decodePortable(text: string, length: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(length)
  let bits = 0
  for (let i = 0, at = 0; at < length; i++) {
    bits = (bits << 6) | sextet(text.charCodeAt(i))
    if (i % 4 > 0) bytes[at++] = bits >> (6 - 2 * (i % 4))
  }
  return bytes
}

function sextet(code: number): number {
  if (code >= 97) return code === 95 ? 63 : code - 71
  if (code === 95) return 63
  if (code >= 65) return code - 65
  if (code >= 48) return code + 4
  return code === 43 || code === 45 ? 62 : 63
}
