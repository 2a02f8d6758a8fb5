import { CONTROL_CLASSES, OUTCOMES, STATES } from '../contract/envelope.ts'
import { CHECK_RESULTS, EVIDENCE_TYPES, REPORT_STATUSES } from '../contract/evidence.ts'

/**
 * The subset of JSON Schema that the three contract schemas use; `findSchemaIssues` supports only this
 * subset.
 */
export interface ContractSchema {
  readonly $schema?: string
  readonly title?: string
  readonly type: JsonType | readonly JsonType[]
  readonly required?: readonly string[]
  readonly properties?: Readonly<Record<string, ContractSchema>>
  readonly items?: ContractSchema
  readonly enum?: readonly string[]
  readonly minLength?: 1
  readonly format?: 'uuid' | 'date-time'
  readonly additionalProperties?: false
}

export type JsonType = 'object' | 'array' | 'string' | 'number' | 'integer' | 'boolean' | 'null'

const name = { type: 'string', minLength: 1 } as const

/** The part of the envelope's schema about its `identity`. */
export const IDENTITY_SCHEMA: ContractSchema = {
  type: 'object',
  required: ['agent_id', 'owner_id', 'control_class'],
  properties: {
    agent_id: name,
    owner_id: name,
    user_id: name,
    control_class: { type: 'string', enum: CONTROL_CLASSES },
  },
}

/**
 * JSON Schema (2020-12) of the message envelope. Other members are not allowed; extensions go into
 * `metadata`.
 */
export const ENVELOPE_SCHEMA: ContractSchema = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  title: 'Message envelope, UAICP 0.3',
  type: 'object',
  required: [
    'uaicp_version',
    'request_id',
    'trace_id',
    'state',
    'timestamp',
    'identity',
    'outcome',
  ],
  properties: {
    uaicp_version: { type: 'string' },
    request_id: { type: 'string', format: 'uuid' },
    trace_id: name,
    parent_trace_id: name,
    state: { type: 'string', enum: STATES },
    timestamp: { type: 'string', format: 'date-time' },
    identity: IDENTITY_SCHEMA,
    outcome: { type: 'string', enum: OUTCOMES },
    streaming: {
      type: 'object',
      properties: {
        chunk_id: { type: 'string' },
        is_final: { type: 'boolean' },
        stream_index: { type: 'integer' },
      },
    },
    rollback_action: {
      type: 'object',
      properties: {
        type: { type: 'string' },
        target: { type: 'string' },
        payload: { type: ['object', 'string'] },
      },
    },
    metadata: { type: 'object' },
  },
  additionalProperties: false,
}

/**
 * JSON Schema (2020-12) of the evidence object. Other members are allowed; extensions have namespaced
 * names.
 */
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

/**
 * JSON Schema (2020-12) of the verification report. Other members are allowed, in the report and in each
 * check.
 */
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
