/** Fields of messages in the order in which Pydantic AI 2.33 writes them, with the defaults it fills in. */
export const MESSAGE_FIELDS: {
  readonly [kind: string]: { readonly [field: string]: unknown }
} = {
  request: {
    parts: undefined,
    timestamp: null,
    instructions: null,
    kind: 'request',
    run_id: null,
    conversation_id: null,
    metadata: null,
    state: 'complete',
  },
  response: {
    parts: undefined,
    usage: undefined,
    model_name: null,
    timestamp: undefined,
    kind: 'response',
    provider_name: null,
    provider_url: null,
    provider_details: null,
    provider_response_id: null,
    finish_reason: null,
    run_id: null,
    conversation_id: null,
    metadata: null,
    state: 'complete',
  },
}

/** Fields of `RequestUsage`, in order, with defaults. */
export const USAGE_FIELDS: { readonly [field: string]: unknown } = {
  input_tokens: 0,
  cache_write_tokens: 0,
  cache_read_tokens: 0,
  output_tokens: 0,
  input_audio_tokens: 0,
  cache_audio_read_tokens: 0,
  output_audio_tokens: 0,
  details: {},
  cost: null,
}

const provider = { id: null, provider_name: null, provider_details: null }

const call = {
  tool_name: undefined,
  args: null,
  tool_call_id: undefined,
  tool_kind: null,
  ...provider,
}

const answer = {
  tool_name: undefined,
  content: undefined,
  tool_call_id: undefined,
  tool_kind: null,
  metadata: null,
  timestamp: undefined,
  outcome: 'success',
}

/**
 * Fields of parts in Pydantic AI's order, with defaults. A field whose default is undefined is left out when
 * absent: either the thread requires it anyway, or (timestamps) it is filled from the message.
 */
export const PART_FIELDS: { readonly [kind: string]: { readonly [field: string]: unknown } } = {
  'system-prompt': { content: undefined, timestamp: undefined, dynamic_ref: null },
  'user-prompt': { content: undefined, timestamp: undefined },
  'tool-return': answer,
  'retry-prompt': {
    content: undefined,
    tool_name: null,
    tool_call_id: undefined,
    timestamp: undefined,
  },
  'tool-availability-delta': { tools_added: [], tool_call_id: undefined },
  speech: {
    speaker: undefined,
    transcript: null,
    audio: null,
    interrupted_at_ms: null,
    ...provider,
  },
  text: { content: undefined, ...provider },
  thinking: { content: '', id: null, signature: null, provider_name: null, provider_details: null },
  'tool-call': call,
  'builtin-tool-call': call,
  'builtin-tool-return': { ...answer, provider_name: null, provider_details: null },
  compaction: { content: null, ...provider },
  file: { content: undefined, ...provider },
}

/** Part kinds that have a timestamp. Without one, Pydantic AI fills in the time of reading. */
export const DATED_PARTS: ReadonlySet<string> = new Set(
  Object.keys(PART_FIELDS).filter((kind) => 'timestamp' in PART_FIELDS[kind]!),
)
