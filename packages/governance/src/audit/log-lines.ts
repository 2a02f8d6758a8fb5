import { isPlainObject } from '@skein/base'
import { CONTROL_CLASSES, type Envelope, OUTCOMES, STATES } from '../contract/envelope.ts'
import { isBareUuid, isStrictDateTime, validateEnvelope } from '../schema/validate.ts'

/** One line of a stored log. */
interface StoredLine {
  /**
   * A 0 byte followed by the bytes of the line without line break; RFC 6962 hashes this as a leaf. Copy
   * these bytes to keep them, because their buffer may be reused.
   */
  readonly leaf: Uint8Array
  /** Byte offset of the line in the log. */
  readonly offset: number
  /** False for a last line without line break, which means that writing it was interrupted. */
  readonly isWhole: boolean
}

/** The stored text or bytes of a log, in pieces of any size. */
export type LogSource =
  string | Uint8Array | Iterable<string | Uint8Array> | AsyncIterable<string | Uint8Array>

const NEWLINE = 10
const utf8 = new TextEncoder()

/**
 * Splits a stored log into lines without copying each line. The 0 byte at the start of a leaf overwrites
 * the line break before the line, which is no longer needed.
 */
export async function* splitLines(source: LogSource): AsyncGenerator<StoredLine[], void> {
  // The first byte is reserved for the 0 byte of the first leaf.
  let rest: Uint8Array = new Uint8Array(1)
  let offset = 0
  const isOne = typeof source === 'string' || source instanceof Uint8Array
  for await (const piece of isOne ? [source] : source) {
    const bytes = typeof piece === 'string' ? utf8.encode(piece) : piece
    const buffer = new Uint8Array(rest.length + bytes.length)
    buffer.set(rest)
    buffer.set(bytes, rest.length)
    const lines: StoredLine[] = []
    let start = 1
    for (let end = findEnd(buffer, rest.length); end >= 0; end = findEnd(buffer, end + 1)) {
      buffer[start - 1] = 0
      lines.push({ leaf: buffer.subarray(start - 1, end), offset, isWhole: true })
      offset += end + 1 - start
      start = end + 1
    }
    rest = buffer.subarray(start - 1)
    yield lines
  }
  if (rest.length <= 1) return
  rest[0] = 0
  yield [{ leaf: rest, offset, isWhole: false }]
}

function findEnd(buffer: Uint8Array, from: number): number {
  return buffer.indexOf(NEWLINE, from)
}

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Parses the envelope in a line's bytes; undefined if it is not a schema-valid envelope. */
export function readEnvelope(line: Uint8Array): Envelope | undefined {
  try {
    const value: unknown = JSON.parse(decoder.decode(line))
    return isUsualEnvelope(value) || validateEnvelope(value).length === 0
      ? (value as Envelope)
      : undefined
  } catch {
    return undefined // Not UTF-8 or not JSON.
  }
}

const states: ReadonlySet<unknown> = new Set(STATES)
const outcomes: ReadonlySet<unknown> = new Set(OUTCOMES)
const controls: ReadonlySet<unknown> = new Set(CONTROL_CLASSES)

/**
 * Checks quickly for the usual form of envelopes that governors write; all envelopes of this form are
 * schema-valid. An audit may read millions of lines, and the general validator takes ten times as long.
 */
function isUsualEnvelope(value: unknown): boolean {
  if (!isPlainObject(value)) return false
  for (const key in value) if (!isValidMember(key, value[key])) return false
  return (
    'uaicp_version' in value &&
    'request_id' in value &&
    'trace_id' in value &&
    'state' in value &&
    'timestamp' in value &&
    'identity' in value &&
    'outcome' in value
  )
}

function isValidMember(key: string, value: unknown): boolean {
  switch (key) {
    case 'uaicp_version':
      return typeof value === 'string'
    case 'request_id':
      return typeof value === 'string' && isBareUuid(value)
    case 'trace_id':
    case 'parent_trace_id':
      return isName(value)
    case 'state':
      return states.has(value)
    case 'outcome':
      return outcomes.has(value)
    case 'timestamp':
      return typeof value === 'string' && isKnownTime(value)
    case 'identity':
      return (
        isPlainObject(value) &&
        isName(value['agent_id']) &&
        isName(value['owner_id']) &&
        (value['user_id'] === undefined || isName(value['user_id'])) &&
        controls.has(value['control_class'])
      )
    case 'metadata':
      return isPlainObject(value)
    case 'rollback_action':
      return (
        isPlainObject(value) &&
        typeof value['type'] === 'string' &&
        typeof value['target'] === 'string' &&
        (typeof value['payload'] === 'string' || isPlainObject(value['payload']))
      )
    default:
      return false // Envelopes with rarer members are left to the general validator.
  }
}

function isName(value: unknown): boolean {
  return typeof value === 'string' && value !== ''
}

let lastTime = ''

/** Checks a time. The last valid time is cached, because neighbouring entries often have the same one. */
function isKnownTime(text: string): boolean {
  if (text === lastTime) return true
  if (!isStrictDateTime(text)) return false
  lastTime = text
  return true
}
