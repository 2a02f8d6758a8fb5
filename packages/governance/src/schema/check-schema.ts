import type { ContractSchema, JsonType } from './schemas.ts'

/** One thing that is wrong with an object, and where. */
export interface Issue {
  /** JSON pointer, empty for the object itself. */
  readonly path: string
  readonly rule: string
  readonly message: string
}

/**
 * Judges a value as a 2020-12 validator does that asserts formats. Finds all issues, not only the
 * first. Arrays are read by index: an array from outside may have replaced its own methods.
 */
export function findSchemaIssues(schema: ContractSchema, value: unknown, path = ''): Issue[] {
  const types = [schema.type].flat() as readonly JsonType[]
  if (!types.some((type) => isOfType(type, value))) {
    return [{ path, rule: 'type', message: `must be ${types.join(' or ')}` }]
  }
  const issues: Issue[] = []
  if (typeof value === 'string') {
    if (schema.minLength && value === '') {
      issues.push({ path, rule: 'minLength', message: 'must not be empty' })
    }
    if (schema.enum && !schema.enum.includes(value)) {
      issues.push({ path, rule: 'enum', message: `must be one of ${schema.enum.join(', ')}` })
    }
    const isOfFormat = schema.format === 'uuid' ? UUID.test(value) : isDateTime(value)
    if (schema.format && !isOfFormat) {
      issues.push({ path, rule: 'format', message: `must be a ${schema.format}` })
    }
    return issues
  }
  if (Array.isArray(value)) {
    for (let i = 0; schema.items && i < value.length; i++) {
      issues.push(...findSchemaIssues(schema.items, value[i], `${path}/${i}`))
    }
    return issues
  }
  if (typeof value !== 'object' || value === null) return issues
  // An object that is no array has named members.
  const members = value as Record<string, unknown>
  const { required = [], properties = {}, additionalProperties } = schema
  for (const key of required) {
    if (members[key] !== undefined) continue
    issues.push({ path: `${path}/${key}`, rule: 'required', message: 'is missing' })
  }
  for (const key of Object.keys(members)) {
    const known = Object.hasOwn(properties, key) ? properties[key] : undefined
    const at = `${path}/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`
    if (known) {
      if (members[key] !== undefined) issues.push(...findSchemaIssues(known, members[key], at))
    } else if (additionalProperties === false) {
      issues.push({ path: at, rule: 'additionalProperties', message: 'is not a known member' })
    }
  }
  return issues
}

function isOfType(type: JsonType, value: unknown): boolean {
  switch (type) {
    case 'null':
      return value === null
    case 'array':
      return Array.isArray(value)
    case 'object':
      return typeof value === 'object' && value !== null && !Array.isArray(value)
    case 'integer':
      return Number.isInteger(value)
    case 'number':
      return Number.isFinite(value)
    default:
      return typeof value === type
  }
}

// JSON Schema format `uuid` as common validators assert it: any case, with or without `urn:uuid:`.
const UUID = /^(?:urn:uuid:)?[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/i
const BARE_UUID = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/
const DATE_TIME =
  /^(\d{4})-(\d\d)-(\d\d)[t\s](\d\d):(\d\d):(\d\d)(?:\.\d+)?(?:z|([+-])(\d\d)(?::?(\d\d))?)$/i
// Upper-case T and Z, or an offset with its colon: what every reader of RFC 3339 accepts.
const STRICT_DATE_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)$/
const DAYS = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]

/** The one form of UUID that this package writes: lower case, bare. */
export function isBareUuid(text: string): boolean {
  return BARE_UUID.test(text)
}

/** JSON Schema format `date-time` as common validators assert it: a space in place of the T passes too. */
function isDateTime(text: string): boolean {
  const match = DATE_TIME.exec(text)
  if (!match) return false
  const [year, month, day, hour, minute, second] = match.slice(1, 7).map(Number) as SixNumbers
  const isLeapYear = year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0)
  const days = month === 2 && isLeapYear ? 29 : DAYS[month - 1]
  if (days === undefined || day < 1 || day > days) return false
  const sign = match[7] === '-' ? -1 : 1
  const offset = { hours: Number(match[8] ?? 0), minutes: Number(match[9] ?? 0) }
  if (offset.hours > 23 || offset.minutes > 59) return false
  if (hour <= 23 && minute <= 59 && second <= 59) return true
  // A leap second is 23:59:60 in UTC, so the offset has to be taken off first.
  const utcMinute = minute - offset.minutes * sign
  const utcHour = hour - offset.hours * sign - (utcMinute < 0 ? 1 : 0)
  const isLastMinute = utcMinute === 59 || utcMinute === -1
  return second === 60 && isLastMinute && (utcHour === 23 || utcHour === -1)
}

type SixNumbers = [number, number, number, number, number, number]

/** RFC 3339 in its strict form, with offset. */
export function isStrictDateTime(text: string): boolean {
  return STRICT_DATE_TIME.test(text) && isDateTime(text)
}

/** A W3C trace id: 32 lower-case hex digits, not all zero. */
export function isTraceId(text: string): boolean {
  return /^[0-9a-f]{32}$/.test(text) && !/^0+$/.test(text)
}
