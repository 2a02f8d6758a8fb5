import { CONTROL_CLASSES, OUTCOMES, STATES } from '../envelope.ts'
import type { ContractSchema } from './contract-schema.ts'

const name = { type: 'string', minLength: 1 } as const

/** JSON Schema (2020-12) of the message envelope. No member beside these: extend `metadata`. */
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
    identity: {
      type: 'object',
      required: ['agent_id', 'owner_id', 'control_class'],
      properties: {
        agent_id: name,
        owner_id: name,
        user_id: name,
        control_class: { type: 'string', enum: CONTROL_CLASSES },
      },
    },
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
