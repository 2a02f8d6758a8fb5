/** The part kinds that Pydantic AI accepts in a request. */
export const REQUEST_PARTS: ReadonlySet<string> = new Set([
  'system-prompt',
  'user-prompt',
  'tool-return',
  'retry-prompt',
  'tool-availability-delta',
  'speech',
])

/** The part kinds that Pydantic AI accepts in a response. */
export const RESPONSE_PARTS: ReadonlySet<string> = new Set([
  'text',
  'thinking',
  'tool-call',
  'builtin-tool-call',
  'builtin-tool-return',
  'compaction',
  'file',
  'speech',
])

/** The kinds of content that Pydantic AI accepts in a prompt. */
export const CONTENT_KINDS: ReadonlySet<string> = new Set([
  'text-content',
  'image-url',
  'audio-url',
  'video-url',
  'document-url',
  'binary',
  'uploaded-file',
  'cache-point',
])

/** The finish reasons that Pydantic AI accepts. */
export const FINISH_REASONS: ReadonlySet<string> = new Set([
  'stop',
  'length',
  'content_filter',
  'tool_call',
  'error',
])
