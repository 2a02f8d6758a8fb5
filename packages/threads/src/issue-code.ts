import type { Severity } from './issue.ts'

/** How strictly to judge: the letter of the specification, what real threads need (default), or only what readers trip over. */
export type Profile = 'strict' | 'standard' | 'lenient'

/** Every code that validation reports. Codes are stable. */
export const IssueCode = {
  /** A required field is absent. */
  MissingField: 'missing_field',
  WrongType: 'wrong_type',
  /** A value outside the specification's list. */
  BadValue: 'bad_value',
  /** An id is the empty string. */
  EmptyId: 'empty_id',
  /** Not an ISO 8601 date and time (rule V1). */
  BadTimestamp: 'bad_timestamp',
  BadBase64: 'bad_base64',
  UnsupportedVersion: 'unsupported_version',
  /** A 2.x version after 2.0.0: read and kept, not understood in full. */
  NewerVersion: 'newer_version',
  /** An id is not a UUID; reported only with `ids: 'uuid'`. */
  IdNotUuid: 'id_not_uuid',
  /** A registry key differs from its entry's `agent_id`. */
  AgentKeyMismatch: 'agent_key_mismatch',
  /** `agent_id` is not in the registry (rule V3). */
  UnknownAgent: 'unknown_agent',
  /** `source_agent` or `target_agents` name an agent outside the registry. */
  UnknownEventAgent: 'unknown_event_agent',
  UnknownTurnType: 'unknown_turn_type',
  UnknownPartKind: 'unknown_part_kind',
  UnknownContentKind: 'unknown_content_kind',
  /** System prompts are configuration and not stored in a thread. */
  InlineSystemPrompt: 'inline_system_prompt',
  /** A tool return whose call is nowhere before it (rule V2). */
  ReturnWithoutCall: 'return_without_call',
  /** A tool return for a call that was answered already (rule V2). */
  DuplicateReturn: 'duplicate_return',
  ToolNameMismatch: 'tool_name_mismatch',
  /** A call is still open although a later user turn was answered. */
  CallLeftOpen: 'call_left_open',
  /** Arguments that are neither text, object nor null. */
  UnusualArgs: 'unusual_args',
  /** A turn starts before an earlier one ended (rule V4). */
  TurnsOverlap: 'turns_overlap',
  TurnEndsBeforeStart: 'turn_ends_before_start',
  /** A message is older than the one before it (rule V5). */
  MessagesOutOfOrder: 'messages_out_of_order',
  UpdatedBeforeCreated: 'updated_before_created',
  /** A field of responses is set on a request. */
  ResponseFieldOnRequest: 'response_field_on_request',
  /** A message belongs to another agent than its turn. */
  AgentDiffers: 'agent_differs',
  /** A signature or id without the provider that issued it. */
  ThinkingWithoutProvider: 'thinking_without_provider',
  /** A timestamp without zone; read as UTC. */
  ZonelessTimestamp: 'zoneless_timestamp',
  /** Text with half of a surrogate pair, which Python refuses. Looked for in the profile `strict` only. */
  LoneSurrogate: 'lone_surrogate',
  /** A JSON key stands twice in one object; the last one won. */
  DuplicateKey: 'duplicate_key',
  InvalidJson: 'invalid_json',
} as const
export type IssueCode = (typeof IssueCode)[keyof typeof IssueCode]

/** Codes that the JSON Schema finds too; together they are "the structure". */
export const STRUCTURAL_CODES: ReadonlySet<string> = new Set<IssueCode>([
  'missing_field',
  'wrong_type',
  'bad_value',
  'empty_id',
  'bad_timestamp',
  'bad_base64',
  'unsupported_version',
])

/** Severity in the profiles strict, standard, lenient; a code that is not listed is an error in each. */
const SEVERITIES: { readonly [code in IssueCode]?: readonly [Severity, Severity, Severity] } = {
  bad_timestamp: ['error', 'error', 'warning'],
  bad_base64: ['error', 'error', 'warning'],
  empty_id: ['error', 'error', 'warning'],
  newer_version: ['error', 'warning', 'warning'],
  agent_key_mismatch: ['error', 'error', 'warning'],
  unknown_agent: ['error', 'error', 'warning'],
  unknown_event_agent: ['warning', 'warning', 'info'],
  unknown_turn_type: ['error', 'warning', 'warning'],
  unknown_part_kind: ['error', 'info', 'info'],
  unknown_content_kind: ['error', 'info', 'info'],
  inline_system_prompt: ['error', 'warning', 'info'],
  return_without_call: ['error', 'error', 'warning'],
  duplicate_return: ['error', 'error', 'warning'],
  tool_name_mismatch: ['error', 'warning', 'info'],
  call_left_open: ['warning', 'warning', 'info'],
  unusual_args: ['warning', 'warning', 'info'],
  turns_overlap: ['error', 'warning', 'info'],
  turn_ends_before_start: ['error', 'warning', 'info'],
  messages_out_of_order: ['error', 'warning', 'info'],
  updated_before_created: ['warning', 'warning', 'info'],
  response_field_on_request: ['warning', 'warning', 'info'],
  agent_differs: ['info', 'info', 'info'],
  thinking_without_provider: ['warning', 'warning', 'info'],
  zoneless_timestamp: ['warning', 'warning', 'info'],
  lone_surrogate: ['warning', 'info', 'info'],
  duplicate_key: ['error', 'warning', 'warning'],
}

const COLUMN = { strict: 0, standard: 1, lenient: 2 } as const

export function severityOf(code: IssueCode, profile: Profile): Severity {
  return SEVERITIES[code]?.[COLUMN[profile]] ?? 'error'
}
