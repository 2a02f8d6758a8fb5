import { decodeBase64 } from '@skein/base'

/**
 * Decodes base64 as vendors, files and web pages write it: with line breaks, without padding, in the URL-safe
 * alphabet, or as a data URL. Throws for anything else.
 */
export function decodeLooseBase64(text: string): Uint8Array<ArrayBuffer> {
  return decodeBase64(strictBase64(text))
}

/**
 * Converts base64 in one of the forms that `decodeLooseBase64` accepts to standard base64, which every vendor
 * accepts. The result is not validated.
 */
export function strictBase64(text: string): string {
  if (text.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(text)) return text
  const digits = text
    .replace(/^data:[^,]*;base64,/, '')
    .replace(/[\s=]+/g, '')
    .replaceAll('-', '+')
    .replaceAll('_', '/')
  return digits.padEnd(Math.ceil(digits.length / 4) * 4, '=')
}

/** Joins several pieces into one array. A single piece is returned as it is. */
export function joinBytes(pieces: readonly Uint8Array[]): Uint8Array {
  const [first] = pieces
  if (first && pieces.length === 1) return first
  const whole = new Uint8Array(pieces.reduce((length, piece) => length + piece.length, 0))
  let offset = 0
  for (const piece of pieces) {
    whole.set(piece, offset)
    offset += piece.length
  }
  return whole
}
