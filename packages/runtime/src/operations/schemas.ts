import type { JsonSchema } from '@skein/base'
import type { NamedSchemas } from './shape.ts'

/** A reference to a schema of `SCHEMAS`. */
export function ref(name: string): JsonSchema {
  return { $ref: `#/components/schemas/${name}` }
}

export const text = (maxLength = 1000): JsonSchema => ({ type: 'string', maxLength })
export const listOf = (items: JsonSchema): JsonSchema => ({ type: 'array', items })
export const mapOf = (additionalProperties: JsonSchema): JsonSchema => ({
  type: 'object',
  additionalProperties,
})

/** An object with exactly these fields; those with a `?` may be missing. */
export function shape(fields: Readonly<Record<string, JsonSchema>>): JsonSchema {
  const { properties, required } = named(fields)
  return { type: 'object', properties, required, additionalProperties: false }
}

/** As `shape`, for what we answer: more fields may come with time. */
export function answer(fields: Readonly<Record<string, JsonSchema>>): JsonSchema {
  const { properties, required } = named(fields)
  return { type: 'object', properties, required }
}

function named(fields: Readonly<Record<string, JsonSchema>>): {
  properties: Record<string, JsonSchema>
  required: string[]
} {
  const properties: Record<string, JsonSchema> = {}
  const required: string[] = []
  for (const [key, schema] of Object.entries(fields)) {
    const name = key.replace(/\?$/, '')
    properties[name] = schema
    if (name === key) required.push(name)
  }
  return { properties, required }
}

const string: JsonSchema = { type: 'string' }
const integer: JsonSchema = { type: 'integer' }
const number: JsonSchema = { type: 'number' }
const boolean: JsonSchema = { type: 'boolean' }
const object: JsonSchema = { type: 'object' }
const anything: JsonSchema = {}
const nullable = (type: string): JsonSchema => ({ type: [type, 'null'] })
const oneOf = (...values: readonly string[]): JsonSchema => ({ type: 'string', enum: values })

/** Names of environment variables. */
export const envName: JsonSchema = { type: 'string', pattern: '^[A-Za-z_][A-Za-z0-9_]{0,127}$' }
export const limit = (maximum: number): JsonSchema => ({ type: 'integer', minimum: 1, maximum })
export const offset: JsonSchema = { type: 'integer', minimum: 0, maximum: 10_000_000 }

const textMap: JsonSchema = {
  type: 'object',
  propertyNames: envName,
  additionalProperties: text(65_536),
  maxProperties: 200,
}
const paths: JsonSchema = { type: 'array', items: text(1024), maxItems: 200 }

const lifecycle = oneOf('idle', 'running', 'waiting', 'stopped', 'failed', 'terminated', 'erased')

const sendMessage = shape({
  'text?': text(1_000_000),
  'content?': { type: 'array', items: object, maxItems: 200 },
  'role?': oneOf('user', 'assistant'),
  'isSilent?': boolean,
  'attachments?': paths,
  'metadata?': object,
  'messageId?': { type: 'string', minLength: 1, maxLength: 200 },
})

const amount: JsonSchema = { type: 'number', minimum: 0 }
const bounds = { 'maxTokens?': amount, 'maxCostUsd?': amount, 'maxDurationMs?': amount }

const modelLog = {
  logId: string,
  stepId: string,
  at: string,
  side: oneOf('a', 'b'),
  prompt: string,
  provider: string,
  model: string,
  attempt: integer,
  'durationMs?': number,
  'firstTokenMs?': number,
  'finishReason?': string,
  'usage?': object,
  'costUsd?': number,
  'error?': answer({ code: string, message: string }),
}

/** Everything that several routes take or answer. */
export const SCHEMAS: NamedSchemas = {
  Error: answer({
    error: answer({
      code: string,
      message: string,
      'hint?': string,
      'problems?': listOf(answer({ field: string, message: string })),
    }),
  }),
  Thread: answer({
    id: string,
    tenant: string,
    owner: nullable('string'),
    agent: string,
    parentId: nullable('string'),
    rootId: string,
    title: nullable('string'),
    tags: listOf(string),
    clientId: nullable('string'),
    lifecycle,
    waiting: integer,
    tokens: number,
    costUsd: number,
    createdAt: number,
    updatedAt: number,
    seq: integer,
    epoch: integer,
    wakeAt: nullable('number'),
    attempts: integer,
  }),
  SendMessage: sendMessage,
  CreateThread: shape({
    agent: text(200),
    'owner?': text(200),
    'title?': text(256),
    'tags?': { type: 'array', items: text(100), maxItems: 50 },
    'clientId?': { type: 'string', minLength: 1, maxLength: 200 },
    'env?': textMap,
    'secrets?': textMap,
    'values?': object,
    'metadata?': object,
    'budget?': shape({ ...bounds, 'tree?': shape(bounds) }),
    'message?': { anyOf: [text(1_000_000), sendMessage] },
  }),
  Sent: answer({ queueId: string, messageId: string, seq: integer }),
  Message: answer({
    id: string,
    message: answer({ id: string, type: oneOf('user', 'assistant', 'tool_result') }),
    side: oneOf('a', 'b'),
    isSilent: boolean,
    at: string,
    turnId: string,
    attachments: listOf(string),
    'subagentId?': string,
    'metadata?': object,
  }),
  Event: answer({ type: string, at: string }),
  StoredEvent: answer({ seq: integer, event: { $ref: '#/components/schemas/Event' } }),
  Subagent: answer({
    reference: string,
    name: string,
    'title?': string,
    description: string,
    'resumable?': boolean,
    'blocking?': boolean,
    'threadName?': string,
    'spawnGroupId?': string,
    'createdAt?': number,
    status: string,
    'parentCommunication?': oneOf('implicit', 'explicit'),
  }),
  File: answer({
    path: string,
    mediaType: string,
    sizeBytes: integer,
    hash: string,
    writtenAt: string,
  }),
  Variable: answer({ name: string, type: oneOf('text', 'secret'), 'value?': string }),
  VariablesRequest: answer({
    requestId: string,
    required: listOf(string),
    missing: listOf(string),
    expiresAt: string,
    status: oneOf('open', 'provided', 'expired'),
  }),
  Effect: answer({
    id: string,
    name: string,
    args: anything,
    at: string,
    'cron?': string,
    'key?': string,
    attempts: integer,
  }),
  WaitingItem: answer({
    threadId: string,
    rootId: string,
    interruptId: string,
    toolCallId: string,
    toolName: string,
    arguments: anything,
    kind: oneOf('approval', 'input'),
    path: listOf(string),
    openedAt: string,
    'expiresAt?': string,
    'risk?': anything,
    'request?': anything,
    'question?': anything,
  }),
  SessionResult: answer({
    outcome: oneOf('completed', 'failed', 'stopped', 'terminated', 'waiting'),
    reason: string,
    text: string,
    'data?': anything,
    attachments: listOf(string),
    waiting: listOf({ $ref: '#/components/schemas/WaitingItem' }),
    thread: { $ref: '#/components/schemas/Thread' },
  }),
  ModelLog: answer(modelLog),
  ModelLogDetail: answer({
    ...modelLog,
    system: nullable('string'),
    tools: listOf(object),
    params: object,
    messages: listOf(object),
    'messageId?': string,
  }),
  Cost: answer({
    threadId: string,
    tokens: number,
    costUsd: number,
    byModel: mapOf(answer({ tokens: number, costUsd: number, calls: integer })),
    byThread: mapOf(answer({ agent: string, tokens: number, costUsd: number })),
  }),
  Audit: answer({
    tree: string,
    lines: listOf(string),
    checkpoint: string,
    publicKey: object,
  }),
  Agent: answer({
    name: string,
    'title?': string,
    'description?': string,
    type: oneOf('ai_human', 'dual_ai'),
    sides: listOf(
      answer({
        side: oneOf('a', 'b'),
        label: string,
        prompt: string,
        models: listOf(string),
        tools: listOf(answer({ name: string, kind: oneOf('tool', 'handoff', 'subagent') })),
      }),
    ),
    variables: listOf(answer({ name: string, type: string, required: boolean })),
  }),
}
