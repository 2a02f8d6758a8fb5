import type { JsonSchema } from '@skein/base'
import type { SystemMessage, ThreadMessage, Turn } from './thread.ts'
import type { MessagePart, MultiModalContent } from './part.ts'
import { TIMESTAMP_PATTERN } from './timestamp.ts'
import { BASE64_PATTERN } from './validate-part.ts'

type Schemas = { readonly [name: string]: JsonSchema }

const text: JsonSchema = { type: 'string' }
const id: JsonSchema = { type: 'string', minLength: 1 }
const time: JsonSchema = { type: 'string', pattern: TIMESTAMP_PATTERN }
const nullableText: JsonSchema = { type: ['string', 'null'] }
const anything: JsonSchema = {}

/**
 * Returns the schema of an object that may have additional fields, because the protocol requires readers to
 * keep unknown fields.
 */
function object(required: Schemas, optional: Schemas = {}): JsonSchema {
  return {
    type: 'object',
    required: Object.keys(required),
    properties: { ...required, ...optional },
  }
}

/**
 * Returns a schema that applies one of `cases`, chosen by the value of `field`; any other string is accepted
 * without further checks. `Value` is the union of values in the types, so a value without a schema does not
 * compile.
 */
function byField<Value extends string>(
  field: string,
  cases: { readonly [Name in Value]: JsonSchema },
): JsonSchema {
  return {
    type: 'object',
    required: [field],
    properties: { [field]: text },
    allOf: Object.entries<JsonSchema>(cases).map(([value, schema]) => ({
      if: { properties: { [field]: { const: value } } },
      // This `then` is the keyword of JSON Schema, not a promise.
      // oxlint-disable-next-line unicorn/no-thenable
      then: schema,
    })),
  }
}

const url = object(
  { url: text, identifier: text },
  { media_type: nullableText, force_download: { enum: [true, false, 'allow-local'] } },
)

const content: JsonSchema = byField<MultiModalContent['kind']>('kind', {
  'image-url': url,
  'audio-url': url,
  'video-url': url,
  'document-url': url,
  binary: object({
    data: { type: 'string', pattern: BASE64_PATTERN },
    media_type: text,
    identifier: text,
  }),
  'text-content': object({ content: text }),
  'uploaded-file': object({ file_id: text, provider_name: text }),
  'cache-point': object({}),
})

const validationError = object({ type: text, loc: { type: 'array' }, msg: text })

const builtin = object({ tool_name: text, tool_call_id: id })

const part: JsonSchema = byField<MessagePart['part_kind']>('part_kind', {
  text: object({ content: text }, { id: nullableText }),
  thinking: object(
    {},
    {
      content: nullableText,
      signature: nullableText,
      thinking_id: nullableText,
      provider_name: nullableText,
    },
  ),
  'tool-call': object({ tool_name: text, tool_call_id: id, args: anything }),
  'tool-return': object({
    tool_name: text,
    tool_call_id: id,
    status: { enum: ['success', 'error', 'validation_error'] },
    content: anything,
  }),
  'retry-prompt': object(
    { content: { anyOf: [text, { type: 'array', items: validationError }] } },
    { tool_name: nullableText, tool_call_id: nullableText },
  ),
  file: object({ content: { $ref: '#/$defs/MultiModalContent' } }, { id: nullableText }),
  'user-prompt': object({
    content: {
      anyOf: [
        text,
        { type: 'array', items: { anyOf: [text, { $ref: '#/$defs/MultiModalContent' }] } },
      ],
    },
  }),
  'builtin-tool-call': builtin,
  'builtin-tool-return': builtin,
  speech: object({ speaker: { enum: ['user', 'assistant'] } }, { transcript: nullableText }),
  compaction: object({}, { content: nullableText }),
  'tool-availability-delta': object({}),
})

const counter: JsonSchema = { type: 'number' }

const usage: JsonSchema = {
  type: ['object', 'null'],
  properties: {
    input_tokens: counter,
    output_tokens: counter,
    thinking_tokens: counter,
    total_tokens: counter,
    cache_write_tokens: counter,
    cache_read_tokens: counter,
    input_audio_tokens: counter,
    cache_audio_read_tokens: counter,
    output_audio_tokens: counter,
  },
}

const parts: JsonSchema = { type: 'array', items: { $ref: '#/$defs/MessagePart' } }

const threadMessage = object(
  { timestamp: time, parts, agent_id: id },
  {
    model_name: nullableText,
    provider_name: nullableText,
    provider_response_id: nullableText,
    usage: { $ref: '#/$defs/Usage' },
    finish_reason: { enum: ['stop', 'length', 'content_filter', 'tool_call', 'error', null] },
  },
)

const message: JsonSchema = {
  ...byField<(ThreadMessage | SystemMessage)['message_type']>('message_type', {
    request: threadMessage,
    response: threadMessage,
    system: object(
      { timestamp: time, event_type: text, event_data: anything },
      { source_agent: nullableText, target_agents: { type: ['array', 'null'], items: text } },
    ),
  }),
  properties: { message_type: { enum: ['request', 'response', 'system'] } },
}

const turn: JsonSchema = byField<Turn['turn_type']>('turn_type', {
  user: object({ submitted_at: time, parts }),
  agent: object(
    {
      agent_id: id,
      started_at: time,
      completed_at: time,
      messages: { type: 'array', items: { $ref: '#/$defs/Message' } },
    },
    { total_usage: { $ref: '#/$defs/Usage' } },
  ),
})

/**
 * The structure of a thread as JSON Schema, draft 2020-12. It accepts exactly the documents in which
 * `validateThread` (profile `standard`) finds no structural error; rules on order, registry and call ids
 * cannot be expressed in a schema.
 */
export const threadSchema: JsonSchema = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  title: 'ThreadProtocol 2.0.0',
  ...object(
    {
      version: { type: 'string', pattern: '^2\\.\\d+\\.\\d+$' },
      thread_id: id,
      created_at: time,
      updated_at: time,
      agents: { type: 'object', additionalProperties: { $ref: '#/$defs/AgentConfig' } },
      turns: { type: 'array', items: { $ref: '#/$defs/Turn' } },
    },
    { title: text, metadata: { type: 'object' } },
  ),
  $defs: {
    AgentConfig: object(
      { agent_id: id, agent_name: text, created_at: time },
      { model_name: nullableText, provider_name: nullableText, config_ref: nullableText },
    ),
    Turn: turn,
    Message: message,
    MessagePart: part,
    MultiModalContent: content,
    Usage: usage,
  },
}
