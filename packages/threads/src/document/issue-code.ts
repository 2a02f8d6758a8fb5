import type { Issue, Severity } from '../issue.ts'
import { CallLedger } from './tool-calls.ts'
import { instantOf, isZoneless } from './timestamp.ts'

/**
 * How strictly a thread is checked: `strict` follows the letter of the specification, `standard` (the
 * default) also accepts deviations that real threads contain, `lenient` reports as errors only what readers
 * cannot handle.
 */
export type Profile = 'strict' | 'standard' | 'lenient'

/** Every code that validation reports. Codes never change. */
export const IssueCode = {
  /** A required field is absent. */
  MissingField: 'missing_field',
  WrongType: 'wrong_type',
  /** A value that is not in the specification's list. */
  BadValue: 'bad_value',
  /** An id is the empty string. */
  EmptyId: 'empty_id',
  /** Not an ISO 8601 date and time (rule V1). */
  BadTimestamp: 'bad_timestamp',
  BadBase64: 'bad_base64',
  UnsupportedVersion: 'unsupported_version',
  /** A 2.x version after 2.0.0: it is read and kept, but not fully understood. */
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
  /** A system prompt in the thread; system prompts are configuration and must not be stored there. */
  InlineSystemPrompt: 'inline_system_prompt',
  /** A tool return without an earlier call (rule V2). */
  ReturnWithoutCall: 'return_without_call',
  /** A tool return for a call that was answered already (rule V2). */
  DuplicateReturn: 'duplicate_return',
  ToolNameMismatch: 'tool_name_mismatch',
  /** A call has no return although a later user turn was answered. */
  CallLeftOpen: 'call_left_open',
  /** Arguments that are neither text, object nor null. */
  UnusualArgs: 'unusual_args',
  /** A turn starts before an earlier turn ended (rule V4). */
  TurnsOverlap: 'turns_overlap',
  TurnEndsBeforeStart: 'turn_ends_before_start',
  /** A message is older than the previous message (rule V5). */
  MessagesOutOfOrder: 'messages_out_of_order',
  UpdatedBeforeCreated: 'updated_before_created',
  /** A field of responses is set on a request. */
  ResponseFieldOnRequest: 'response_field_on_request',
  /** A message has another agent than its turn. */
  AgentDiffers: 'agent_differs',
  /** A signature or id without the provider that issued it. */
  ThinkingWithoutProvider: 'thinking_without_provider',
  /** A timestamp without a time zone; it is read as UTC. */
  ZonelessTimestamp: 'zoneless_timestamp',
  /** Text with half of a surrogate pair, which Python rejects. Checked in the profile `strict` only. */
  LoneSurrogate: 'lone_surrogate',
  /** A JSON key appears twice in one object; the last value is used. */
  DuplicateKey: 'duplicate_key',
  InvalidJson: 'invalid_json',
} as const

/** A code that validation reports. */
export type IssueCode = (typeof IssueCode)[keyof typeof IssueCode]

/** The codes of structural errors: the errors that the JSON Schema of a thread finds too. */
export const STRUCTURAL_CODES: ReadonlySet<string> = new Set<IssueCode>([
  'missing_field',
  'wrong_type',
  'bad_value',
  'empty_id',
  'bad_timestamp',
  'bad_base64',
  'unsupported_version',
])

/**
 * Severities in the profiles strict, standard and lenient, in this order: `e` is error, `w` warning, `i` info.
 * A code that is not listed is an error in all three.
 */
const SEVERITIES: { readonly [code in IssueCode]?: string } = {
  bad_timestamp: 'eew',
  bad_base64: 'eew',
  empty_id: 'eew',
  newer_version: 'eww',
  agent_key_mismatch: 'eew',
  unknown_agent: 'eew',
  unknown_event_agent: 'wwi',
  unknown_turn_type: 'eww',
  unknown_part_kind: 'eii',
  unknown_content_kind: 'eii',
  inline_system_prompt: 'ewi',
  return_without_call: 'eew',
  duplicate_return: 'eew',
  tool_name_mismatch: 'ewi',
  call_left_open: 'wwi',
  unusual_args: 'wwi',
  turns_overlap: 'ewi',
  turn_ends_before_start: 'ewi',
  messages_out_of_order: 'ewi',
  updated_before_created: 'wwi',
  response_field_on_request: 'wwi',
  agent_differs: 'iii',
  thinking_without_provider: 'wwi',
  zoneless_timestamp: 'wwi',
  lone_surrogate: 'wii',
  duplicate_key: 'eww',
}

const PROFILES: readonly Profile[] = ['strict', 'standard', 'lenient']

/** Returns the severity of an issue in a profile. */
export function severityOf(code: IssueCode, profile: Profile): Severity {
  const letter = SEVERITIES[code]?.[PROFILES.indexOf(profile)]
  return letter === 'w' ? 'warning' : letter === 'i' ? 'info' : 'error'
}

/** Settings of `validateThread`. */
export interface ValidateOptions {
  /** Default `standard`. */
  readonly profile?: Profile
  /** `uuid` requires UUIDs in `thread_id` and `agent_id`; by default any non-empty string is an id. */
  readonly ids?: 'any' | 'uuid'
  /** The most issues to list; further issues are only counted. Default 1,000. */
  readonly maxIssues?: number
}

/** The result of `validateThread`. */
export interface Validation {
  /** True when no issue is an error. */
  readonly valid: boolean
  /** True when there is no structural error, even if rules on order, registry or call ids are broken. */
  readonly wellFormed: boolean
  readonly issues: readonly Issue[]
  /** The number of all issues, including the issues that are not listed because of `maxIssues`. */
  readonly total: number
}

/** The position of a call and the tool it asks for. */
interface OpenCall {
  readonly turnIndex: number
  readonly messageIndex: number
  readonly partIndex: number
  readonly toolName: unknown
}

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

/**
 * Checks single values and collects the issues. The current position is stored as indices, and a pointer is
 * built only for an issue, so a valid document costs no allocation beyond the table of calls.
 */
export class IssueCollector {
  readonly calls: CallLedger<OpenCall> = new CallLedger()
  /**
   * The indices of the current turn, message, part and content item; -1 for a level that the position does
   * not have.
   */
  turnIndex = -1
  messageIndex = -1
  partIndex = -1
  itemIndex = -1

  readonly #issues: Issue[] = []
  readonly #profile: Profile
  readonly #strict: boolean
  readonly #uuids: boolean
  readonly #maxIssues: number
  #valid = true
  #wellFormed = true
  #total = 0

  constructor({ profile = 'standard', ids = 'any', maxIssues = 1_000 }: ValidateOptions) {
    this.#profile = profile
    this.#strict = profile === 'strict'
    this.#uuids = ids === 'uuid'
    this.#maxIssues = maxIssues
  }

  result(): Validation {
    return {
      valid: this.#valid,
      wellFormed: this.#wellFormed,
      issues: this.#issues,
      total: this.#total,
    }
  }

  id(value: unknown, tail: string): void {
    if (typeof value !== 'string') this.missingOr(value, tail, 'a string')
    else if (value === '') this.report(IssueCode.EmptyId, tail)
    else if (this.#uuids && this.partIndex < 0 && !UUID.test(value))
      this.report(IssueCode.IdNotUuid, tail)
  }

  text(value: unknown, tail: string): void {
    if (typeof value !== 'string') this.missingOr(value, tail, 'a string')
    else if (this.#strict && !isWellFormed(value)) this.report(IssueCode.LoneSurrogate, tail)
  }

  /** Checks an optional string. Null is accepted, because Pydantic AI writes absent fields as null. */
  optionalText(value: unknown, tail: string): void {
    if (value !== undefined && value !== null && typeof value !== 'string') {
      this.report(IssueCode.WrongType, tail, 'a string')
    }
  }

  /**
   * Checks a timestamp (rule V1) and returns its instant; NaN for an invalid timestamp, so that no comparison
   * with it reports an issue.
   */
  time(value: unknown, tail: string): number {
    if (typeof value !== 'string') {
      this.missingOr(value, tail, 'a timestamp')
      return NaN
    }
    const instant = instantOf(value)
    if (Number.isNaN(instant)) this.report(IssueCode.BadTimestamp, tail)
    else if (value.charCodeAt(value.length - 1) !== 90 && isZoneless(value)) {
      this.report(IssueCode.ZonelessTimestamp, tail)
    }
    return instant
  }

  missingOr(value: unknown, tail: string, wanted: string): void {
    this.report(value === undefined ? IssueCode.MissingField : IssueCode.WrongType, tail, wanted)
  }

  /** Reports a word that is not known at its place, or a value that is not even a string. */
  unknownWord(code: IssueCode, value: unknown, tail: string, wanted?: string): void {
    if (typeof value === 'string') this.report(code, tail, wanted)
    else this.missingOr(value, tail, 'a string')
  }

  report(code: IssueCode, tail: string, wanted?: string): void {
    const severity = severityOf(code, this.#profile)
    if (severity === 'error') {
      this.#valid = false
      if (STRUCTURAL_CODES.has(code)) this.#wellFormed = false
    }
    if (this.#total++ >= this.#maxIssues) return
    const pointer = this.#place() + tail
    // The message does not contain the value itself, because it may be private.
    const what = code.replaceAll('_', ' ') + (wanted ? `, expected ${wanted}` : '')
    const message = `${pointer || 'the document'}: ${what}`
    this.#issues.push({ code, severity, pointer, message })
  }

  #place(): string {
    let place = this.turnIndex < 0 ? '' : `/turns/${this.turnIndex}`
    if (this.messageIndex >= 0) place += `/messages/${this.messageIndex}`
    if (this.partIndex >= 0) place += `/parts/${this.partIndex}`
    if (this.itemIndex >= 0) place += `/content/${this.itemIndex}`
    return place
  }
}

/**
 * Calls `String.prototype.isWellFormed`. Every engine has had this method since 2023, but the library types
 * that this package is compiled with do not declare it.
 */
function isWellFormed(text: string): boolean {
  return (text as string & { isWellFormed(): boolean }).isWellFormed()
}
