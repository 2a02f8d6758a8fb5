import { canonicalJson, isPlainObject } from '@skein/base'
import { hashText } from './digest.ts'
import { isBareUuid, isStrictDateTime } from './formats.ts'
import type { Evidence } from './evidence.ts'
import type { Envelope, Streaming } from './envelope.ts'
import { EVIDENCE_SCHEMA } from './schema/evidence-schema.ts'
import { REPORT_SCHEMA } from './schema/report-schema.ts'
import type { ContractSchema } from './schema/contract-schema.ts'
import type { VerificationReport } from './report.ts'
import type { Issue } from './validate-schema.ts'
import { isSupportedVersion } from './version.ts'

const HASH = /^sha256:[0-9a-f]{64}$/
const NAMESPACED = /^[^:\s]+:[^\s]+$/

/** Collects what a schema-valid object lacks to count towards an invariant. */
type Find = (rule: string, path: string, message: string) => void

/** Envelope: version, ids and times as written here; streaming and rollback blocks complete. */
export function findEnvelopeGateIssues(envelope: Envelope): Issue[] {
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

/** What a rollback action lacks (§5.3); each issue by its path. */
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
export function findEvidenceGateIssues(evidence: Evidence): Issue[] {
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
export function findReportGateIssues(report: Partial<VerificationReport>): Issue[] {
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
