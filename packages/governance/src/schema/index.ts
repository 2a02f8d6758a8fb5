export type { ContractSchema, JsonType } from './contract-schema.ts'
export { ENVELOPE_SCHEMA } from './envelope-schema.ts'
export { EVIDENCE_SCHEMA } from './evidence-schema.ts'
export { REPORT_SCHEMA } from './report-schema.ts'
