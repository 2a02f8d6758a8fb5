export { checkChunks } from '../contract/envelope.ts'
export { ENVELOPE_SCHEMA, EVIDENCE_SCHEMA, REPORT_SCHEMA, type ContractSchema } from './schemas.ts'
export {
  parseEnvelope,
  validateEnvelope,
  validateEvidence,
  validateReport,
  type ValidationIssue,
} from './validate.ts'
