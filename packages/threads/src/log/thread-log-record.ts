import { tryParseJson } from '@skein/base'
import { crc32 } from './crc32.ts'

/**
 * The format of one line of a log: `{"sum":"1a2b3c4d","rec":…}`. The sum is the CRC-32 of the record's bytes,
 * starting from the sum of the previous line, so that a line that was changed, removed or moved is detected.
 * The sum protects against accidents, not against deliberate changes.
 */
const HEAD = '{"sum":"'
const MIDDLE = '","rec":'
const TAIL = '}\n'
/** The offset of the record's text in a line. */
const START = HEAD.length + 8 + MIDDLE.length

const encoder = new TextEncoder()
const decoder = new TextDecoder('utf-8', { fatal: true })

/**
 * One record as the bytes of its line, with its checksum (CRC-32), from which the checksum of the next line
 * continues.
 */
export interface EncodedRecord {
  readonly bytes: Uint8Array
  readonly sum: number
}

/** Encodes the line for a record's JSON text; `previous` is the sum of the previous line. */
export function encodeRecord(json: string, previous: number): EncodedRecord {
  const bytes = encoder.encode(`${HEAD}00000000${MIDDLE}${json}${TAIL}`)
  const sum = crc32(bytes, START, bytes.length - TAIL.length, previous)
  const hex = sum.toString(16).padStart(8, '0')
  for (let index = 0; index < 8; index++) bytes[HEAD.length + index] = hex.charCodeAt(index)
  return { bytes, sum }
}

/** Returns the record's JSON text from a line that `checkRecord` accepted. */
export function recordText(bytes: Uint8Array, start: number, end: number): string {
  return decoder.decode(bytes.subarray(start + START, end - 1))
}

/**
 * Returns the sum of the line in `bytes[start, end)`, without its line feed; undefined when the line is
 * incomplete or damaged. `isTorn` distinguishes the two for a line that has no line feed.
 */
export function checkRecord(
  bytes: Uint8Array,
  start: number,
  end: number,
  previous: number,
): number | undefined {
  const sum = storedSum(bytes, start, end)
  if (sum === undefined || bytes[end - 1] !== 0x7d) return undefined
  return crc32(bytes, start + START, end - 1, previous) === sum ? sum : undefined
}

/**
 * True if the bytes from `start` on are the beginning of a line whose write was interrupted: they start as a
 * line does, as far as they go, and are not a whole line.
 */
export function isTorn(bytes: Uint8Array, start: number): boolean {
  const head = encoder.encode(`${HEAD}00000000${MIDDLE}{`)
  head.set(bytes.subarray(start, start + START))
  if (storedSum(head, 0, head.length) === undefined) return false
  return tryParseJson(new TextDecoder().decode(bytes.subarray(start))) === undefined
}

/** Reads the sum that is stored in a line; undefined when the line does not start as expected. */
function storedSum(bytes: Uint8Array, start: number, end: number): number | undefined {
  if (
    end - start < START + 1 ||
    !matches(bytes, start, HEAD) ||
    !matches(bytes, start + HEAD.length + 8, MIDDLE)
  )
    return undefined
  let sum = 0
  for (let index = start + HEAD.length; index < start + HEAD.length + 8; index++) {
    const code = bytes[index]!
    if (code >= 48 && code <= 57) sum = sum * 16 + code - 48
    else if (code >= 97 && code <= 102) sum = sum * 16 + code - 87
    else return undefined
  }
  return sum
}

function matches(bytes: Uint8Array, start: number, text: string): boolean {
  for (let index = 0; index < text.length; index++) {
    if (bytes[start + index] !== text.charCodeAt(index)) return false
  }
  return true
}
