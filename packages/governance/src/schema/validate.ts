import { isOfType, isPlainObject } from '@skein/base'
import {
  type Envelope,
  freezeJson,
  hashText,
  isSupportedVersion,
  type Streaming,
  tryCanonicalJson,
} from '../contract/envelope.ts'
import type { Evidence, VerificationReport } from '../contract/evidence.ts'
import { GovernanceError, reason } from '../contract/reason.ts'
import {
  type ContractSchema,
  ENVELOPE_SCHEMA,
  EVIDENCE_SCHEMA,
  type JsonType,
  REPORT_SCHEMA,
} from './schemas.ts'

/**
 * How strictly to validate. `schema` checks only the contract schemas, for exchange with other systems.
 * `gate` also checks the conditions for delivery, such as a hash that matches its payload.
 */
export type ValidationLevel = 'schema' | 'gate'

const HASH = /^sha256:[0-9a-f]{64}$/
const NAMESPACED = /^[^:\s]+:[^\s]+$/

/**
 * Returns what is wrong with an envelope; an empty list if it is valid. Level `gate` also checks the
 * version, the form of ids and times, that `deliver` has the outcome `success`, that chunks before
 * delivery are marked as unverified, and that `streaming` and `rollback_action` are complete.
 */
export function validateEnvelope(
  value: unknown,
  level: ValidationLevel = 'schema',
): ValidationIssue[] {
  const issues = findSchemaIssues(ENVELOPE_SCHEMA, value)
  if (issues.length > 0 || level === 'schema') return issues
  const find = collectIn(issues)
  const envelope = value as Envelope
  const { uaicp_version, request_id, trace_id, timestamp, state, outcome, streaming } = envelope
  if (!isSupportedVersion(uaicp_version)) find('version', '/uaicp_version', 'is not supported')
  if (!isBareUuid(request_id)) find('uuid', '/request_id', 'must be a bare lower-case UUID')
  if (/^0+$/.test(trace_id)) find('trace', '/trace_id', 'must not be all zero')
  if (!isStrictDateTime(timestamp)) find('date-time', '/timestamp', 'must be RFC 3339')
  if (state === 'deliver' && outcome !== 'success') {
    find('outcome', '/outcome', 'must be success in state deliver')
  }
  if (streaming) {
    const { chunk_id, is_final, stream_index }: Partial<Streaming> = streaming
    if (!isName(chunk_id)) find('streaming', '/streaming/chunk_id', 'must be named')
    if (typeof is_final !== 'boolean') find('streaming', '/streaming/is_final', 'must be there')
    if (!Number.isInteger(stream_index) || (stream_index ?? -1) < 0) {
      find('streaming', '/streaming/stream_index', 'must count from 0')
    }
    if (state !== 'deliver' && streaming['uaicp:verified'] !== false) {
      find('unverified', '/streaming/uaicp:verified', 'must be false before delivery')
    }
  }
  return envelope.rollback_action
    ? [...issues, ...findRollbackIssues(envelope.rollback_action)]
    : issues
}

/** Returns which members of a rollback action are missing or wrong (UAICP §5.3). */
export function findRollbackIssues(action: unknown): ValidationIssue[] {
  const issues: ValidationIssue[] = []
  const find = collectIn(issues)
  const at = '/rollback_action'
  if (!isPlainObject(action)) return [{ path: at, rule: 'rollback', message: 'must be an object' }]
  if (!isName(action['type'])) find('rollback', `${at}/type`, 'must be named')
  if (!isName(action['target'])) find('rollback', `${at}/target`, 'must be named')
  const { payload } = action
  if (typeof payload !== 'string' && !isPlainObject(payload)) {
    find('rollback', `${at}/payload`, 'must be an object or a string')
  }
  return issues
}

/**
 * Returns what is wrong with an evidence object. At level `gate`, its hash must match its payload, its
 * time must be strict RFC 3339, custom evidence must have a subtype, and extensions must be namespaced.
 */
export function validateEvidence(
  value: unknown,
  level: ValidationLevel = 'schema',
): ValidationIssue[] {
  const issues = findSchemaIssues(EVIDENCE_SCHEMA, value)
  if (issues.length > 0 || level === 'schema') return issues
  const find = collectIn(issues)
  const evidence = value as Evidence
  const { hash, payload, collected_at, evidence_type } = evidence
  const text = payload === undefined ? undefined : tryCanonicalJson(payload)
  if (!HASH.test(hash)) find('hash', '/hash', 'must be sha256: and 64 hex digits')
  else if (text === undefined || hashText(text) !== hash) {
    find('hash', '/hash', 'is not the hash of the payload')
  }
  if (!isStrictDateTime(collected_at)) find('date-time', '/collected_at', 'must be RFC 3339')
  if (evidence_type === 'custom' && !NAMESPACED.test(evidence['uaicp:subtype'] ?? '')) {
    find('subtype', '/uaicp:subtype', 'must name the custom kind as prefix:name')
  }
  findExtensionIssues(evidence, EVIDENCE_SCHEMA, find)
  return issues
}

/**
 * Returns what is wrong with a verification report. At level `gate`, it must name its verifier and the
 * evidence and contain at least one check, its status and every check must be `pass`, its time must be
 * strict RFC 3339, and extensions must be namespaced.
 */
export function validateReport(
  value: unknown,
  level: ValidationLevel = 'schema',
): ValidationIssue[] {
  const issues = findSchemaIssues(REPORT_SCHEMA, value)
  if (issues.length > 0 || level === 'schema') return issues
  const find = collectIn(issues)
  const report = value as Partial<VerificationReport>
  const { status, checks = [], verifier_id, evidence_ids, generated_at = '' } = report
  if (!isName(verifier_id)) find('verifier', '/verifier_id', 'must be named')
  if (!evidence_ids) find('evidence', '/evidence_ids', 'must name the evidence looked at')
  if (status !== 'pass') find('status', '/status', 'is not pass')
  if (checks.length === 0) find('checks', '/checks', 'must hold a check')
  for (const [index, { result }] of checks.entries()) {
    if (result !== 'pass') find('checks', `/checks/${index}/result`, 'is not pass')
  }
  if (!isStrictDateTime(generated_at)) find('date-time', '/generated_at', 'must be RFC 3339')
  findExtensionIssues(report, REPORT_SCHEMA, find)
  return issues
}

type Find = (rule: string, path: string, message: string) => void

function collectIn(issues: ValidationIssue[]): Find {
  return (rule, path, message) => void issues.push({ path, rule, message })
}

function findExtensionIssues(value: object, schema: ContractSchema, find: Find): void {
  for (const key of Object.keys(value)) {
    if (Object.hasOwn(schema.properties ?? {}, key) || NAMESPACED.test(key)) continue
    find('namespace', `/${key}`, 'is an extension and must be named prefix:name')
  }
}

function isName(value: unknown): boolean {
  return typeof value === 'string' && value !== ''
}

/**
 * Reads an envelope that comes from outside and throws GovernanceError if it is not schema-valid or its
 * version is not supported. The request id is converted to the bare lower-case form; members that the
 * schema allows but does not define are kept.
 */
export function parseEnvelope(value: unknown): Envelope {
  const [issue] = validateEnvelope(value)
  if (issue) {
    const detail = `${issue.path || 'the envelope'} ${issue.message}`
    throw new GovernanceError(`This is not a UAICP envelope: ${detail}.`, [
      reason('SCHEMA_INVALID', issue.path, issue.message),
    ])
  }
  const envelope = value as Envelope
  if (!isSupportedVersion(envelope.uaicp_version)) {
    throw new GovernanceError(
      `The envelope has version "${envelope.uaicp_version}", which is not supported.`,
      [reason('VERSION_UNSUPPORTED', envelope.uaicp_version)],
      { hint: 'Versions 0.2.x and 0.3.x are read.' },
    )
  }
  const request_id = envelope.request_id.toLowerCase().replace(/^urn:uuid:/, '')
  return freezeJson({ ...structuredClone(envelope), request_id })
}

/** One problem of a validated object: where it is, and which rule is violated. */
export interface ValidationIssue {
  /** JSON pointer to the wrong member; empty for the validated object itself. */
  readonly path: string
  readonly rule: string
  readonly message: string
}

/**
 * Validates a value like a JSON Schema 2020-12 validator that also checks formats, and returns all
 * issues, not only the first. Arrays are read by index, because an array from outside may have overridden
 * its methods.
 */
export function findSchemaIssues(
  schema: ContractSchema,
  value: unknown,
  path = '',
): ValidationIssue[] {
  const types = [schema.type].flat() as readonly JsonType[]
  if (!types.some((type) => isOfType(type, value))) {
    return [{ path, rule: 'type', message: `must be ${types.join(' or ')}` }]
  }
  const issues: ValidationIssue[] = []
  const add = (rule: string, message: string, at = path): void =>
    void issues.push({ path: at, rule, message })
  if (typeof value === 'string') {
    if (schema.minLength && value === '') add('minLength', 'must not be empty')
    if (schema.enum && !schema.enum.includes(value))
      add('enum', `must be one of ${schema.enum.join(', ')}`)
    const isOfFormat = schema.format === 'uuid' ? UUID.test(value) : isDateTime(value)
    if (schema.format && !isOfFormat) add('format', `must be a ${schema.format}`)
    return issues
  }
  if (Array.isArray(value)) {
    for (let i = 0; schema.items && i < value.length; i++) {
      issues.push(...findSchemaIssues(schema.items, value[i], `${path}/${i}`))
    }
    return issues
  }
  if (typeof value !== 'object' || value === null) return issues
  // The cast is safe: the value is an object and not an array.
  const members = value as Record<string, unknown>
  const { required = [], properties = {}, additionalProperties } = schema
  for (const key of required)
    if (members[key] === undefined) add('required', 'is missing', `${path}/${key}`)
  for (const key of Object.keys(members)) {
    const known = Object.hasOwn(properties, key) ? properties[key] : undefined
    const at = `${path}/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`
    if (known) {
      if (members[key] !== undefined) issues.push(...findSchemaIssues(known, members[key], at))
    } else if (additionalProperties === false)
      add('additionalProperties', 'is not a known member', at)
  }
  return issues
}

// The JSON Schema format `uuid` as common validators check it: any case, with or without `urn:uuid:`.
const UUID = /^(?:urn:uuid:)?[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/i
const BARE_UUID = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/
const DATE_TIME =
  /^(\d{4})-(\d\d)-(\d\d)[t\s](\d\d):(\d\d):(\d\d)(?:\.\d+)?(?:z|([+-])(\d\d)(?::?(\d\d))?)$/i
// The strict form has an upper-case T, and Z or an offset with a colon; every RFC 3339 parser accepts it.
const STRICT_DATE_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)$/

/** Checks for the form of UUID that this package writes: lower case, without `urn:uuid:`. */
export function isBareUuid(text: string): boolean {
  return BARE_UUID.test(text)
}

/**
 * Checks the JSON Schema format `date-time` as common validators do: a space instead of the T is accepted
 * too.
 */
function isDateTime(text: string): boolean {
  const match = DATE_TIME.exec(text)
  if (!match) return false
  const [year, month, day, hour, minute, second] = match.slice(1, 7).map(Number) as SixNumbers
  // Day 0 of the next month is the last day of this one; months repeat their lengths after 400 years.
  const days = new Date(Date.UTC(2000 + (year % 400), month, 0)).getUTCDate()
  if (month < 1 || month > 12 || day < 1 || day > days) return false
  const sign = match[7] === '-' ? -1 : 1
  const offsetHours = Number(match[8] ?? 0)
  const offsetMinutes = Number(match[9] ?? 0)
  if (offsetHours > 23 || offsetMinutes > 59) return false
  if (hour <= 23 && minute <= 59 && second <= 59) return true
  // A leap second is 23:59:60 in UTC, so the offset has to be subtracted first.
  const utcMinute = minute - offsetMinutes * sign
  const utcHour = hour - offsetHours * sign - (utcMinute < 0 ? 1 : 0)
  const isLastMinute = utcMinute === 59 || utcMinute === -1
  return second === 60 && isLastMinute && (utcHour === 23 || utcHour === -1)
}

type SixNumbers = [number, number, number, number, number, number]

/** Checks for a time in the strict form of RFC 3339, with Z or an offset. */
export function isStrictDateTime(text: string): boolean {
  return STRICT_DATE_TIME.test(text) && isDateTime(text)
}

/** Checks for a W3C trace id: 32 lower-case hex digits, not all zero. */
export function isTraceId(text: string): boolean {
  return /^[0-9a-f]{32}$/.test(text) && !/^0+$/.test(text)
}
