import type { JsonObject, JsonValue } from '@skein/base'
import { isPlainObject } from '@skein/base'

/** A rule of the vendor that a request breaks. */
export interface TranscriptIssue {
  /** Name of the rule, see `transcriptRules`. */
  readonly rule: string
  /** Where in the body, e.g. `messages[2].content[0]`. */
  readonly path: string
  readonly message: string
}

/** What a checker knows about the vendor it plays. */
export interface CheckOptions {
  /** Of wires that have it in the address (Google), for rules that only some models have. */
  readonly modelId?: string
  /**
   * Whether this vendor issued a signature or an encrypted text; `text` is what it was issued for,
   * where that is known. Default: anything that is not empty.
   */
  readonly isIssued?: (signature: string, text: string | undefined) => boolean
}

/** Collects the issues of one request; `Rule` is the table of its vendor. */
export class Report<Rule extends string> {
  readonly issues: TranscriptIssue[] = []
  readonly options: CheckOptions
  readonly #rules: Readonly<Record<Rule, string>>

  constructor(rules: Readonly<Record<Rule, string>>, options: CheckOptions) {
    this.#rules = rules
    this.options = options
  }

  /** Notes an issue unless `holds`. */
  check(holds: boolean, rule: Rule, path: string): boolean {
    if (!holds) this.issues.push({ rule, path, message: `${path}: ${this.#rules[rule]}` })
    return holds
  }

  isIssued(signature: unknown, text?: string): boolean {
    if (typeof signature !== 'string' || signature === '') return false
    return this.options.isIssued?.(signature, text) ?? true
  }
}

/** An object, empty where there is none. */
export function asObject(value: JsonValue | undefined): JsonObject {
  return isPlainObject(value) ? (value as JsonObject) : {}
}

/** True for a JSON object. */
export function isJsonObject(value: JsonValue | undefined): value is JsonObject {
  return isPlainObject(value)
}

/** True for a text that is not empty. */
export function isText(value: JsonValue | undefined): value is string {
  return typeof value === 'string' && value !== ''
}

/** A list, empty where there is none. */
export function asList(value: JsonValue | undefined): readonly JsonValue[] {
  return Array.isArray(value) ? value : []
}

/** True when the text is one JSON object. */
export function isJsonObjectText(value: JsonValue | undefined): boolean {
  try {
    return typeof value === 'string' && isPlainObject(JSON.parse(value))
  } catch {
    return false
  }
}

/** True for base64 that is not empty. */
export function isBase64(value: JsonValue | undefined): boolean {
  return isText(value) && value.length % 4 === 0 && /^[A-Za-z0-9+/]+={0,2}$/.test(value)
}

/** True for a text that matches the pattern. */
export function matches(value: JsonValue | undefined, pattern: RegExp): boolean {
  return typeof value === 'string' && pattern.test(value)
}
