import type { JsonObject, JsonValue } from '@skein/base'
import { isPlainObject } from '@skein/base'

/** A rule of the vendor that a request violates. */
export interface TranscriptIssue {
  /** The name of the rule, see `transcriptRules`. */
  readonly rule: string
  /** The place in the body, e.g. `messages[2].content[0]`. */
  readonly path: string
  readonly message: string
}

/** The settings of `checkTranscript`. */
export interface CheckOptions {
  /** The model id, for formats that send it in the address (Google): some rules hold only for some models. */
  readonly modelId?: string
  /**
   * Checks whether this vendor issued a signature or an encrypted text; `text` is the signed text, if
   * known. Default: accepts every non-empty signature.
   */
  readonly isIssued?: (signature: string, text: string | undefined) => boolean
}

/** Collects the issues of one request; `Rule` is the union of the rule names of its vendor. */
export class Report<Rule extends string> {
  readonly issues: TranscriptIssue[] = []
  readonly options: CheckOptions
  readonly #rules: Readonly<Record<Rule, string>>

  constructor(rules: Readonly<Record<Rule, string>>, options: CheckOptions) {
    this.#rules = rules
    this.options = options
  }

  /** Records an issue if `holds` is false; returns `holds`. */
  check(holds: boolean, rule: Rule, path: string): boolean {
    if (!holds) this.issues.push({ rule, path, message: `${path}: ${this.#rules[rule]}` })
    return holds
  }

  isIssued(signature: unknown, text?: string): boolean {
    if (typeof signature !== 'string' || signature === '') return false
    return this.options.isIssued?.(signature, text) ?? true
  }
}

/** Returns the value if it is an object, otherwise an empty object. */
export function asObject(value: JsonValue | undefined): JsonObject {
  return isPlainObject(value) ? (value as JsonObject) : {}
}

/** Checks whether a value is a JSON object. */
export function isJsonObject(value: JsonValue | undefined): value is JsonObject {
  return isPlainObject(value)
}

/** Checks whether a value is a text that is not empty. */
export function isText(value: JsonValue | undefined): value is string {
  return typeof value === 'string' && value !== ''
}

/** Returns the value if it is a list, otherwise an empty list. */
export function asList(value: JsonValue | undefined): readonly JsonValue[] {
  return Array.isArray(value) ? value : []
}

/** Checks whether a value is the text of a JSON object. */
export function isJsonObjectText(value: JsonValue | undefined): boolean {
  try {
    return typeof value === 'string' && isPlainObject(JSON.parse(value))
  } catch {
    return false
  }
}

/** Checks whether a value is base64 text that is not empty. */
export function isBase64(value: JsonValue | undefined): boolean {
  return isText(value) && value.length % 4 === 0 && /^[A-Za-z0-9+/]+={0,2}$/.test(value)
}

/** Checks whether a value is a text that matches the pattern. */
export function matches(value: JsonValue | undefined, pattern: RegExp): boolean {
  return typeof value === 'string' && pattern.test(value)
}
