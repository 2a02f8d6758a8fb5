import { tryParseJson } from '@skein/base'
import { ThreadError } from '../issue.ts'

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

// Four tables let the loop process four bytes per step, which is about three times as fast as one byte per
// step.
const tables = crcTables()
const t0 = tables[0]!
const t1 = tables[1]!
const t2 = tables[2]!
const t3 = tables[3]!

function crcTables(): readonly Uint32Array[] {
  const made = [0, 1, 2, 3].map(() => new Uint32Array(256))
  for (let value = 0; value < 256; value++) {
    let crc = value
    for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1
    made[0]![value] = crc
  }
  for (let value = 0; value < 256; value++) {
    for (let level = 1; level < 4; level++) {
      const before = made[level - 1]![value]!
      made[level]![value] = (before >>> 8) ^ made[0]![before & 0xff]!
    }
  }
  return made
}

/** Computes the CRC-32 (IEEE) of `bytes[start, end)`, continuing from an earlier sum. */
export function crc32(bytes: Uint8Array, start: number, end: number, previous = 0): number {
  let crc = ~previous
  let at = start
  for (; at + 4 <= end; at += 4) {
    crc ^= bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24)
    crc = t3[crc & 0xff]! ^ t2[(crc >>> 8) & 0xff]! ^ t1[(crc >>> 16) & 0xff]! ^ t0[crc >>> 24]!
  }
  for (; at < end; at++) crc = (crc >>> 8) ^ t0[(crc ^ bytes[at]!) & 0xff]!
  return ~crc >>> 0
}

/** Thrown for a damaged line in a log. */
export class LogCorruptError extends ThreadError {
  /** The line number, counted from 1 as in editors. */
  readonly line: number

  constructor(line: number) {
    super(`Line ${line} of the thread log is damaged: its checksum does not match.`, {
      code: 'LOG_CORRUPT',
      hint: 'Restore the file from a copy. Lines before it are intact; { repair: true } keeps only those.',
    })
    this.line = line
  }
}

/** Thrown when another writer appended to the log first. */
export class LogConflictError extends ThreadError {
  readonly expected: number
  /**
   * The actual number of turns; undefined when another process writes to the log, because this process has not
   * read the new turns.
   */
  readonly actual: number | undefined

  constructor(expected: number, actual: number | undefined) {
    super(
      actual === undefined
        ? `Another process writes to the thread log, of which ${expected} turns were read.`
        : `The thread log has ${actual} turns where ${expected} were expected.`,
      {
        code: 'LOG_CONFLICT',
        hint: 'Read the new turns, decide again, and append with the new length. Nothing was written.',
      },
    )
    this.expected = expected
    this.actual = actual
  }
}

/**
 * The storage of a log: a sequence of bytes that only grows at its end. Methods may be synchronous. A log
 * never calls a method before the previous call has finished.
 */
export interface LogStorage {
  /** Returns all stored bytes. */
  read(): Uint8Array | Promise<Uint8Array>
  /**
   * Adds bytes at the end, all or nothing, but only if exactly `size` bytes are stored. With any other
   * number, another writer was faster: then `append` writes nothing and returns false.
   */
  append(bytes: Uint8Array, size: number): boolean | Promise<boolean>
  /**
   * Cuts the storage to `size` bytes. Called only when a log is opened, to remove an incomplete or damaged
   * end. `read` is the number of bytes that were read: if the storage has another number, or if another process
   * is writing, the end may be a line that is being written; then nothing is cut off and `truncate` returns false.
   */
  truncate(size: number, read: number): void | boolean | Promise<void | boolean>
  /** Writes appended bytes to disk, so that they survive a power cut. */
  sync(): void | Promise<void>
  close(): void | Promise<void>
}

/** Stores a log in memory, for tests and browsers. */
export class MemoryLogStorage implements LogStorage {
  #bytes: Uint8Array
  #size: number

  constructor(initial: Uint8Array = new Uint8Array()) {
    this.#bytes = initial.slice()
    this.#size = initial.length
  }

  read(): Uint8Array {
    return this.#bytes.slice(0, this.#size)
  }

  append(bytes: Uint8Array, size: number): boolean {
    if (size !== this.#size) return false
    const needed = size + bytes.length
    if (needed > this.#bytes.length) {
      const grown = new Uint8Array(Math.max(needed, this.#bytes.length * 2))
      grown.set(this.#bytes.subarray(0, size))
      this.#bytes = grown
    }
    this.#bytes.set(bytes, size)
    this.#size = needed
    return true
  }

  truncate(size: number): void {
    this.#size = Math.min(size, this.#size)
  }

  sync(): void {}

  close(): void {}
}
