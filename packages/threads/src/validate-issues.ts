import { CallLedger } from './call-ledger.ts'
import { IssueCode, STRUCTURAL_CODES, severityOf, type Profile } from './issue-code.ts'
import type { Issue } from './issue.ts'
import { instantOf, isZoneless } from './timestamp.ts'

export interface ValidateOptions {
  /** Default `standard`. */
  readonly profile?: Profile
  /** `uuid` asks for UUIDs in `thread_id` and `agent_id`; by default any non-empty string is an id. */
  readonly ids?: 'any' | 'uuid'
  /** Further issues are counted, not listed. Default 1,000. */
  readonly maxIssues?: number
}

export interface Validation {
  /** True when no issue is an error. */
  readonly valid: boolean
  /** True when the structure holds, whatever the rules on order, registry and call ids say. */
  readonly wellFormed: boolean
  readonly issues: readonly Issue[]
  /** How many issues there are in all; more than `issues` when `maxIssues` was reached. */
  readonly total: number
}

/** Where a call stands and which tool it asks for. */
export interface OpenCall {
  readonly turnIndex: number
  readonly messageIndex: number
  readonly partIndex: number
  readonly toolName: unknown
}

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

/**
 * Checks of single values, and what they found. The current place is held as indices, and a pointer is made only for an
 * issue, so a valid document costs no allocation beyond the ledger of calls.
 */
export class IssueCollector {
  readonly calls: CallLedger<OpenCall> = new CallLedger()
  /** Indices of the current place; -1 where there is none. */
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

  /** Pydantic AI writes absent fields as null, so null counts as absent. */
  optionalText(value: unknown, tail: string): void {
    if (value !== undefined && value !== null && typeof value !== 'string') {
      this.report(IssueCode.WrongType, tail, 'a string')
    }
  }

  /** Rule V1. Gives the instant, or NaN, which compares as neither before nor after. */
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

  report(code: IssueCode, tail: string, wanted?: string): void {
    const severity = severityOf(code, this.#profile)
    if (severity === 'error') {
      this.#valid = false
      if (STRUCTURAL_CODES.has(code)) this.#wellFormed = false
    }
    if (this.#total++ >= this.#maxIssues) return
    const pointer = this.#place() + tail
    this.#issues.push({ code, severity, pointer, message: describe(code, pointer, wanted) })
  }

  #place(): string {
    let place = this.turnIndex < 0 ? '' : `/turns/${this.turnIndex}`
    if (this.messageIndex >= 0) place += `/messages/${this.messageIndex}`
    if (this.partIndex >= 0) place += `/parts/${this.partIndex}`
    if (this.itemIndex >= 0) place += `/content/${this.itemIndex}`
    return place
  }
}

/** In every engine since 2023, but not in the library types that this package compiles against. */
function isWellFormed(text: string): boolean {
  return (text as string & { isWellFormed(): boolean }).isWellFormed()
}

/** Says what is wrong where, never with the value itself: it may be private. */
function describe(code: IssueCode, pointer: string, wanted: string | undefined): string {
  const what = code.replaceAll('_', ' ')
  return `${pointer || 'the document'}: ${what}${wanted ? `, expected ${wanted}` : ''}`
}
