import type { ContentRef, MessagePart, MultiModalContent, ValidationError } from './part.ts'
import type {
  AgentConfig,
  AgentTurn,
  Interruption,
  PydanticOrigin,
  SystemMessage,
  SystemPromptMark,
  Thread,
  ThreadLink,
  ThreadMessage,
  ThreadRelationships,
  Usage,
  UserTurn,
} from './thread.ts'

/**
 * Which keys of an object the protocol names, with the shape of each value; `data` is a value of the application.
 * The shape of a list is that of its items. The shape of an object can depend on the object, for example on the
 * kind of a part.
 */
export type KeyShape = 'data' | Fields | EachField | ((value: object) => KeyShape)

interface Fields {
  readonly fields: { readonly [key: string]: KeyShape }
}

/** An object whose keys are data, for example ids. */
interface EachField {
  readonly each: KeyShape
}

/** Returns the shape of the value at `key`, or undefined if the protocol does not name this key. */
export function shapeAt(shape: KeyShape, holder: object, key: string): KeyShape | undefined {
  if (typeof shape === 'function') return shapeAt(shape(holder), holder, key)
  if (shape === 'data' || 'each' in shape) return undefined
  return Object.hasOwn(shape.fields, key) ? shape.fields[key] : undefined
}

/** Returns the shape of a value below a key that is data. */
export function shapeBelow(shape: KeyShape): KeyShape {
  return typeof shape === 'object' && 'each' in shape ? shape.each : 'data'
}

/** Every key of every member of a union. */
type KeyOf<T> = T extends unknown ? keyof T & string : never

/** Requires an entry for each key of the type, so that a new field of the protocol does not compile without one. */
function fieldsOf<T>(fields: { readonly [Key in KeyOf<T>]-?: KeyShape }): Fields {
  return { fields }
}

const contentRef = fieldsOf<ContentRef>({
  uri: 'data',
  size_bytes: 'data',
  hash: 'data',
  media_type: 'data',
})

const content = fieldsOf<MultiModalContent>({
  kind: 'data',
  url: 'data',
  identifier: 'data',
  force_download: 'data',
  vendor_metadata: 'data',
  media_type: 'data',
  data: 'data',
  content_ref: contentRef,
  content: 'data',
  metadata: 'data',
  file_id: 'data',
  provider_name: 'data',
  ttl: 'data',
})

const validationError = fieldsOf<ValidationError>({
  type: 'data',
  loc: 'data',
  msg: 'data',
  input: 'data',
  ctx: 'data',
  url: 'data',
})

/** What the field `content` of a part contains; results of tools are data of the application. */
const CONTENTS: { readonly [kind: string]: KeyShape } = {
  'user-prompt': content,
  file: content,
  'retry-prompt': validationError,
}

const partFields = fieldsOf<MessagePart>({
  part_kind: 'data',
  content: 'data',
  id: 'data',
  provider_name: 'data',
  provider_details: 'data',
  signature: 'data',
  thinking_id: 'data',
  tool_name: 'data',
  tool_call_id: 'data',
  args: 'data',
  tool_kind: 'data',
  status: 'data',
  metadata: 'data',
  outcome: 'data',
  timestamp: 'data',
  content_ref: contentRef,
  speaker: 'data',
  transcript: 'data',
  audio: content,
  interrupted_at_ms: 'data',
  tools_added: 'data',
})

function part(value: object): KeyShape {
  const { part_kind: kind } = value as { readonly part_kind?: unknown }
  const own = typeof kind === 'string' && Object.hasOwn(CONTENTS, kind) ? CONTENTS[kind] : undefined
  return own ? { fields: { ...partFields.fields, content: own } } : partFields
}

const usage = fieldsOf<Usage>({
  input_tokens: 'data',
  output_tokens: 'data',
  thinking_tokens: 'data',
  total_tokens: 'data',
  cache_write_tokens: 'data',
  cache_read_tokens: 'data',
  input_audio_tokens: 'data',
  cache_audio_read_tokens: 'data',
  output_audio_tokens: 'data',
  details: 'data',
  cost: 'data',
})

const pydanticOrigin = fieldsOf<PydanticOrigin>({
  timestamp: 'data',
  absent: 'data',
  verbatim: 'data',
  fields: 'data',
  keys: 'data',
})

const systemPromptMark = fieldsOf<SystemPromptMark>({ at: 'data', prompt: part, part_ref: 'data' })

const message = fieldsOf<ThreadMessage | SystemMessage>({
  message_type: 'data',
  timestamp: 'data',
  parts: part,
  agent_id: 'data',
  model_name: 'data',
  provider_name: 'data',
  provider_response_id: 'data',
  usage,
  finish_reason: 'data',
  provider_url: 'data',
  provider_details: 'data',
  run_id: 'data',
  conversation_id: 'data',
  metadata: 'data',
  state: 'data',
  instructions: 'data',
  instructions_ref: 'data',
  system_prompts: systemPromptMark,
  pydantic_ai: pydanticOrigin,
  event_type: 'data',
  event_data: 'data',
  source_agent: 'data',
  target_agents: 'data',
})

const turn = fieldsOf<UserTurn | AgentTurn>({
  turn_type: 'data',
  submitted_at: 'data',
  parts: part,
  turn_id: 'data',
  user_id: 'data',
  name: 'data',
  client_metadata: 'data',
  run_id: 'data',
  conversation_id: 'data',
  metadata: 'data',
  state: 'data',
  instructions: 'data',
  instructions_ref: 'data',
  system_prompts: systemPromptMark,
  pydantic_ai: pydanticOrigin,
  agent_id: 'data',
  started_at: 'data',
  completed_at: 'data',
  messages: message,
  total_usage: usage,
  completion_status: 'data',
  interruption: fieldsOf<Interruption>({ reason: 'data', interrupted_at: 'data' }),
})

const agent = fieldsOf<AgentConfig>({
  agent_id: 'data',
  agent_name: 'data',
  model_name: 'data',
  provider_name: 'data',
  created_at: 'data',
  config_ref: 'data',
})

const link = fieldsOf<ThreadLink>({ thread_id: 'data', relation: 'data', metadata: 'data' })

/** The shape of a whole thread. */
export const threadShape: KeyShape = fieldsOf<Thread>({
  version: 'data',
  thread_id: 'data',
  created_at: 'data',
  updated_at: 'data',
  title: 'data',
  metadata: 'data',
  agents: { each: agent },
  turns: turn,
  parent_thread_id: 'data',
  relationships: fieldsOf<ThreadRelationships>({ links: link }),
})
