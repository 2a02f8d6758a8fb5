import { isPlainObject } from '@skein/base'
import { CONTROL_CLASSES, type Envelope, OUTCOMES, STATES } from '../contract/envelope.ts'
import { isBareUuid, isStrictDateTime, validateEnvelope } from '../schema/validate.ts'

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
