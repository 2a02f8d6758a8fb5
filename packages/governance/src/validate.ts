import { deepFreeze } from '@skein/base'
import type { Envelope } from './envelope.ts'
import type { Evidence } from './evidence.ts'
import { GovernanceError, reason } from './reason.ts'
import type { VerificationReport } from './report.ts'
import { ENVELOPE_SCHEMA } from './schema/envelope-schema.ts'
import { EVIDENCE_SCHEMA } from './schema/evidence-schema.ts'
import { REPORT_SCHEMA } from './schema/report-schema.ts'
import {
  findEnvelopeGateIssues,
  findEvidenceGateIssues,
  findReportGateIssues,
} from './validate-gate.ts'
import { findSchemaIssues, type Issue } from './validate-schema.ts'
import { isSupportedVersion } from './version.ts'

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
