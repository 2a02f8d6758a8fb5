import { EVIDENCE_TYPES } from '../evidence.ts'
import type { ContractSchema } from './contract-schema.ts'

const name = { type: 'string', minLength: 1 } as const

/** JSON Schema (2020-12) of the evidence object. Open: extensions are namespaced members. */
export const EVIDENCE_SCHEMA: ContractSchema = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  title: 'Evidence object, UAICP 0.3',
  type: 'object',
  required: ['evidence_id', 'evidence_type', 'source', 'collected_at', 'hash'],
  properties: {
    evidence_id: name,
    evidence_type: { type: 'string', enum: EVIDENCE_TYPES },
    source: name,
    request_id: { type: 'string', format: 'uuid' },
    trace_id: name,
    parent_trace_id: name,
    actor: { type: 'string' },
    hash: { type: 'string' },
    collected_at: { type: 'string', format: 'date-time' },
    payload: { type: ['object', 'array', 'string', 'number', 'boolean', 'null'] },
  },
}
