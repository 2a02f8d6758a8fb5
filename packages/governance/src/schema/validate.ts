import { deepFreeze, isPlainObject } from '@skein/base'
import { hashText, isSupportedVersion, tryCanonicalJson } from '../contract/envelope.ts'
import type { Envelope, Streaming } from '../contract/envelope.ts'
import type { Evidence, VerificationReport } from '../contract/evidence.ts'
import { GovernanceError, reason } from '../contract/reason.ts'
import { findSchemaIssues, isBareUuid, isStrictDateTime, type Issue } from './check-schema.ts'
import { ENVELOPE_SCHEMA, EVIDENCE_SCHEMA, REPORT_SCHEMA, type ContractSchema } from './schemas.ts'

/**
 * How strictly to judge. `schema`: as the contract schemas say, for exchange with others. `gate`:
 * also what an object needs to count towards an invariant, such as a hash that matches its payload.
 */
export type ValidationLevel = 'schema' | 'gate'

const HASH = /^sha256:[0-9a-f]{64}$/
const NAMESPACED = /^[^:\s]+:[^\s]+$/

/**
 * What is wrong with an envelope; empty when nothing is. At the gate, ids and times must have the form
 * that this package writes, and the streaming and rollback blocks must be complete.
 */
export function validateEnvelope(value: unknown, level: ValidationLevel = 'schema'): Issue[] {
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

/** What a rollback action lacks (UAICP §5.3). */
export function findRollbackIssues(action: unknown): Issue[] {
  const issues: Issue[] = []
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
 * What is wrong with an evidence object. At the gate, its hash must be that of its payload, its time
 * strict RFC 3339, and its extensions namespaced.
 */
export function validateEvidence(value: unknown, level: ValidationLevel = 'schema'): Issue[] {
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
 * What is wrong with a verification report. At the gate, it must name its verifier and the evidence,
 * hold at least one check, and every check and the whole must pass.
 */
export function validateReport(value: unknown, level: ValidationLevel = 'schema'): Issue[] {
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

function collectIn(issues: Issue[]): Find {
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
 * Reads an envelope from outside. It must be schema-valid and of a version that is read; the request
 * id is brought to the bare lower-case form, and unknown namespaced members are kept. Throws
 * GovernanceError.
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
  return deepFreeze({ ...structuredClone(envelope), request_id })
}
