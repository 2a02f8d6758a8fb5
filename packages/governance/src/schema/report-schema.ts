import { CHECK_RESULTS, REPORT_STATUSES } from '../report.ts'
import type { ContractSchema } from './contract-schema.ts'

const name = { type: 'string', minLength: 1 } as const

/** JSON Schema (2020-12) of the verification report. Open, and so is each check. */
export const REPORT_SCHEMA: ContractSchema = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  title: 'Verification report, UAICP 0.3',
  type: 'object',
  required: ['report_id', 'request_id', 'status', 'checks', 'generated_at'],
  properties: {
    report_id: name,
    request_id: { type: 'string', format: 'uuid' },
    verifier_id: name,
    evidence_ids: { type: 'array', items: { type: 'string' } },
    status: { type: 'string', enum: REPORT_STATUSES },
    checks: {
      type: 'array',
      items: {
        type: 'object',
        required: ['check_id', 'result'],
        properties: {
          check_id: name,
          result: { type: 'string', enum: CHECK_RESULTS },
          details: { type: 'string' },
        },
      },
    },
    generated_at: { type: 'string', format: 'date-time' },
  },
}
