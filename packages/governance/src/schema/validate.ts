import { canonicalJson, deepFreeze, isPlainObject } from '@skein/base'
import {
  type Envelope,
  hashText,
  isSupportedVersion,
  type Streaming,
} from '../contract/envelope.ts'
import type { Evidence, VerificationReport } from '../contract/evidence.ts'
import { GovernanceError, reason } from '../contract/reason.ts'
import { type ContractSchema, ENVELOPE_SCHEMA, EVIDENCE_SCHEMA, REPORT_SCHEMA } from './schemas.ts'
import { findSchemaIssues, isBareUuid, isStrictDateTime, type Issue } from './check-schema.ts'

/**
 * How strictly to judge. `schema`: as the contract schemas say, for exchange with others. `gate`:
 * also what an object needs to count towards an invariant, such as a hash that is true.
 */
export type ValidationLevel = 'schema' | 'gate'

/** What is wrong with an envelope; empty when nothing is. */
export function validateEnvelope(value: unknown, level: ValidationLevel = 'schema'): Issue[] {
  const issues = findSchemaIssues(ENVELOPE_SCHEMA, value)
  if (issues.length > 0 || level === 'schema') return issues
  return findEnvelopeGateIssues(value as Envelope)
}

/** What is wrong with an evidence object. At the gate only minted evidence counts besides. */
export function validateEvidence(value: unknown, level: ValidationLevel = 'schema'): Issue[] {
  const issues = findSchemaIssues(EVIDENCE_SCHEMA, value)
  if (issues.length > 0 || level === 'schema') return issues
  return findEvidenceGateIssues(value as Evidence)
}

/** What is wrong with a verification report. Only a full pass is gate-valid. */
export function validateReport(value: unknown, level: ValidationLevel = 'schema'): Issue[] {
  const issues = findSchemaIssues(REPORT_SCHEMA, value)
  if (issues.length > 0 || level === 'schema') return issues
  return findReportGateIssues(value as VerificationReport)
}

/**
 * Takes an envelope from outside: schema-valid, of a version that is read, its request id in the
 * bare lower-case form. Unknown namespaced members are kept. Throws GovernanceError.
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

const HASH = /^sha256:[0-9a-f]{64}$/
const NAMESPACED = /^[^:\s]+:[^\s]+$/

/** Collects what a schema-valid object lacks to count towards an invariant. */
type Find = (rule: string, path: string, message: string) => void

/** Envelope: version, ids and times as written here; streaming and rollback blocks complete. */
function findEnvelopeGateIssues(envelope: Envelope): Issue[] {
  return collect((find) => {
    const { uaicp_version, request_id, trace_id, timestamp, state, outcome } = envelope
    if (!isSupportedVersion(uaicp_version)) find('version', '/uaicp_version', 'is not supported')
    if (!isBareUuid(request_id)) find('uuid', '/request_id', 'must be a bare lower-case UUID')
    if (/^0+$/.test(trace_id)) find('trace', '/trace_id', 'must not be all zero')
    if (!isStrictDateTime(timestamp)) find('date-time', '/timestamp', 'must be RFC 3339')
    if (state === 'deliver' && outcome !== 'success') {
      find('outcome', '/outcome', 'must be success in state deliver')
    }
    if (envelope.streaming) findStreamingIssues(envelope, find)
    if (envelope.rollback_action) findRollbackIssues(envelope.rollback_action, find)
  })
}

/** What a rollback action lacks (UAICP §5.3); each issue by its path. */
export function findRollbackIssues(action: unknown, find: Find): void {
  const at = '/rollback_action'
  if (!isPlainObject(action)) return find('rollback', at, 'must be an object')
  if (!isName(action['type'])) find('rollback', `${at}/type`, 'must be named')
  if (!isName(action['target'])) find('rollback', `${at}/target`, 'must be named')
  const { payload } = action
  if (typeof payload !== 'string' && !isPlainObject(payload)) {
    find('rollback', `${at}/payload`, 'must be an object or a string')
  }
}

function findStreamingIssues({ streaming, state }: Envelope, find: Find): void {
  const { chunk_id, is_final, stream_index }: Partial<Streaming> = streaming ?? {}
  if (!isName(chunk_id)) find('streaming', '/streaming/chunk_id', 'must be named')
  if (typeof is_final !== 'boolean') find('streaming', '/streaming/is_final', 'must be there')
  if (!Number.isInteger(stream_index) || (stream_index ?? -1) < 0) {
    find('streaming', '/streaming/stream_index', 'must count from 0')
  }
  if (state !== 'deliver' && streaming?.['uaicp:verified'] !== false) {
    find('unverified', '/streaming/uaicp:verified', 'must be false before delivery')
  }
}

/** Evidence: a real hash of the payload, a strict time, namespaced extensions. */
function findEvidenceGateIssues(evidence: Evidence): Issue[] {
  return collect((find) => {
    if (!HASH.test(evidence.hash)) find('hash', '/hash', 'must be sha256: and 64 hex digits')
    else if (hashOf(evidence.payload) !== evidence.hash) {
      find('hash', '/hash', 'is not the hash of the payload')
    }
    if (!isStrictDateTime(evidence.collected_at)) {
      find('date-time', '/collected_at', 'must be RFC 3339')
    }
    const subtype = evidence['uaicp:subtype']
    if (evidence.evidence_type === 'custom' && !NAMESPACED.test(subtype ?? '')) {
      find('subtype', '/uaicp:subtype', 'must name the custom kind as prefix:name')
    }
    findExtensionIssues(evidence, EVIDENCE_SCHEMA, find)
  })
}

/** Report: names its verifier and evidence, has checks, all of them pass and so does the whole. */
function findReportGateIssues(report: Partial<VerificationReport>): Issue[] {
  return collect((find) => {
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
  })
}

function findExtensionIssues(value: object, schema: ContractSchema, find: Find): void {
  for (const key of Object.keys(value)) {
    if (Object.hasOwn(schema.properties ?? {}, key) || NAMESPACED.test(key)) continue
    find('namespace', `/${key}`, 'is an extension and must be named prefix:name')
  }
}

function collect(look: (find: Find) => void): Issue[] {
  const issues: Issue[] = []
  look((rule, path, message) => issues.push({ path, rule, message }))
  return issues
}

function hashOf(payload: unknown): string | undefined {
  if (payload === undefined) return undefined
  try {
    return hashText(canonicalJson(payload))
  } catch {
    // What canonical JSON cannot say has no hash.
    return undefined
  }
}

function isName(value: unknown): boolean {
  return typeof value === 'string' && value !== ''
}
