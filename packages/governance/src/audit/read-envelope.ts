import { isPlainObject } from '@skein/base'
import { CONTROL_CLASSES, OUTCOMES, STATES } from '../envelope.ts'
import type { Envelope } from '../envelope.ts'
import { isBareUuid, isStrictDateTime } from '../formats.ts'
import { validateEnvelope } from '../validate.ts'

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** The schema-valid envelope in a line's bytes, or undefined. */
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
 * True for envelopes in the form that governors write, which are all schema-valid. An audit reads
 * them by the million, and the general validator takes ten times as long.
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
      return isPlainObject(value) && isIdentity(value)
    case 'metadata':
      return isPlainObject(value)
    case 'rollback_action':
      return isPlainObject(value) && isRollback(value)
    default:
      return false // Rare members are the general validator's.
  }
}

function isIdentity({
  agent_id,
  owner_id,
  user_id,
  control_class,
}: Record<string, unknown>): boolean {
  const isUser = user_id === undefined || isName(user_id)
  return isName(agent_id) && isName(owner_id) && isUser && controls.has(control_class)
}

function isRollback({ type, target, payload }: Record<string, unknown>): boolean {
  const isPayload = typeof payload === 'string' || isPlainObject(payload)
  return typeof type === 'string' && typeof target === 'string' && isPayload
}

function isName(value: unknown): boolean {
  return typeof value === 'string' && value !== ''
}

let lastTime = ''

/** Neighbours often have the same millisecond. */
function isKnownTime(text: string): boolean {
  if (text === lastTime) return true
  if (!isStrictDateTime(text)) return false
  lastTime = text
  return true
}
