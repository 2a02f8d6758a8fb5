import { type Clock, systemClock } from './clock.ts'
import type { Random } from './random.ts'

/** Returns a new id each time it is called. */
export type IdSource = () => string

/**
 * Creates a source of UUIDv4 ids. They come from the secure generator, or from `random` when runs must be
 * repeatable.
 */
export function randomIds({ random }: { random?: Random | undefined } = {}): IdSource {
  if (!random) return uuidV4
  return () => randomUuid(random)
}

/** Settings of `timeOrderedIds`. */
export interface TimeOrderedIdOptions {
  readonly clock?: Clock | undefined
  readonly random?: Random | undefined
}

/**
 * Creates a source of UUIDv7 ids. The ids of one source always increase, even within a millisecond and when
 * the clock goes back: the 12 bits after the time are a counter with a random start (RFC 9562 §6.2, method
 * 1).
 */
export function timeOrderedIds({
  clock = systemClock,
  random,
}: TimeOrderedIdOptions = {}): IdSource {
  let time = -1
  let count = 0
  return () => {
    const bytes = randomBytes(random)
    const now = Math.floor(clock.now())
    // The counter starts in the lower half of its range, so that many ids fit into one millisecond before the
    // time has to be advanced artificially.
    if (now <= time && count < 0xfff) count++
    else {
      time = Math.max(now, time + 1)
      count = ((bytes[6]! & 0x07) << 8) | bytes[7]!
    }
    for (let i = 5, rest = time; i >= 0; i--, rest = Math.floor(rest / 256)) bytes[i] = rest % 256
    bytes[6] = 0x70 | (count >> 8)
    bytes[7] = count & 0xff
    bytes[8] = (bytes[8]! & 0x3f) | 0x80
    return formatUuid(bytes)
  }
}

/** Creates a source of the ids `prefix1`, `prefix2`, …: for tests whose output people read. */
export function sequentialIds(prefix = ''): IdSource {
  let count = 0
  return () => `${prefix}${++count}`
}

/** Returns a new UUIDv4 from the platform's secure generator. */
export const uuidV4: IdSource = () => randomUuid(undefined)

let processIds: IdSource | undefined

/** Returns a new UUIDv7 from the machine's clock. Ids increase within this process. */
export const uuidV7: IdSource = () => (processIds ??= timeOrderedIds())()

function randomUuid(random: Random | undefined): string {
  const bytes = randomBytes(random)
  bytes[6] = (bytes[6]! & 0x0f) | 0x40
  bytes[8] = (bytes[8]! & 0x3f) | 0x80
  return formatUuid(bytes)
}

let pool: Uint8Array | undefined
let used = 0

function randomBytes(random: Random | undefined): Uint8Array {
  if (random) return new Uint8Array(16).map(() => random() * 256)
  // Random bytes are fetched in blocks of 4096, because each call of the generator has a high fixed cost.
  // No byte is used twice.
  if (!pool || used === pool.length) {
    pool = crypto.getRandomValues(new Uint8Array(4096))
    used = 0
  }
  return pool.subarray(used, (used += 16))
}

const HEX = '0123456789abcdef'
const DASH = 45
const uuidCodes: number[] = Array.from({ length: 36 }, () => DASH)

/**
 * Writes the id from character codes into one flat string, because ids are kept for long. A string made with
 * `+` or by `crypto.randomUUID` is a tree of pieces and takes ten times the memory.
 */
function formatUuid(bytes: Uint8Array): string {
  let at = 0
  for (let i = 0; i < 16; i++) {
    if (i === 4 || i === 6 || i === 8 || i === 10) at++
    const byte = bytes[i]!
    uuidCodes[at++] = HEX.charCodeAt(byte >> 4)
    uuidCodes[at++] = HEX.charCodeAt(byte & 15)
  }
  return String.fromCharCode.apply(null, uuidCodes)
}

/** The functions of your test runner: `describe` groups tests, `test` declares one. */
export interface TestFunctions {
  describe(name: string, body: () => void): unknown
  test(name: string, body: () => Promise<void>): unknown
}
