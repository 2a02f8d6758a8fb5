import { isObject } from '@skein/base'
import { IssueCode, severityOf } from './issue-code.ts'
import { InvalidThreadError, ThreadError, ThreadLimitError, type Issue } from '../issue.ts'
import { parseJson, type JsonLimits } from '../json/json-parse.ts'
import { stringifyJson } from '../json/json-stringify.ts'
import type { Thread, Turn } from './thread.ts'
import { validateThread, validateTurns, type ValidateOptions } from './validate.ts'

/** Limits on the text that is read. */
export interface ThreadLimits extends JsonLimits {
  /** The most turns. Default 1,000,000. */
  readonly maxTurns?: number
  /** The most messages in all turns together. Default 4,000,000. */
  readonly maxMessages?: number
}

/** Settings of `parseThread` and `safeParseThread`. */
export interface ParseOptions extends ValidateOptions {
  readonly limits?: ThreadLimits
}

/**
 * The result of reading: a thread with warnings, or the errors with the document as far as it could be read.
 */
export type ThreadReading =
  | { readonly ok: true; readonly thread: Thread; readonly issues: readonly Issue[] }
  | { readonly ok: false; readonly document: unknown; readonly issues: readonly Issue[] }

/**
 * Thrown for a thread of an unsupported version. `document` is the thread as plain data, so that the caller
 * can pass it on.
 */
export class UnsupportedVersionError extends ThreadError {
  readonly version: string
  readonly document: unknown

  constructor(version: string, document: unknown) {
    super(
      `The thread has version ${JSON.stringify(version.slice(0, 40))}; this reader knows 2.x.`,
      {
        code: 'UNSUPPORTED_VERSION',
        hint: 'migrateThread() reads 1.0.0, 0.0.3 and 0.0.4; error.document holds the data unchanged.',
      },
    )
    this.version = version
    this.document = document
  }
}

/**
 * Reads and validates a thread. The spelling of numbers and the order of keys are kept for `stringifyThread`.
 *
 * Without a `profile`, only a broken structure is rejected, so that every stored thread can be read: Pydantic
 * AI histories may break the rules on calls. With a `profile`, every error of that profile is rejected.
 * Throws `InvalidThreadError`, `UnsupportedVersionError`, `ThreadLimitError`, or `ThreadError` with code
 * `INVALID_JSON`.
 */
export function parseThread(text: string, options: ParseOptions = {}): Thread {
  const { value, issues, valid } = read(text, options)
  if (valid) return value as Thread
  if (
    isObject(value) &&
    typeof value['version'] === 'string' &&
    !/^2\.\d+\.\d+$/.test(value['version'])
  ) {
    throw new UnsupportedVersionError(value['version'], value)
  }
  throw new InvalidThreadError(issues)
}

/**
 * Reads a thread like `parseThread`, but returns the issues, including warnings, instead of throwing. Throws
 * only when a limit is exceeded.
 */
export function safeParseThread(text: string, options: ParseOptions = {}): ThreadReading {
  try {
    const { value, issues, valid } = read(text, options)
    return valid
      ? { ok: true, thread: value as Thread, issues }
      : { ok: false, document: value, issues }
  } catch (error) {
    if (!(error instanceof ThreadError) || error.code !== 'INVALID_JSON') throw error
    const issue: Issue = {
      code: IssueCode.InvalidJson,
      severity: 'error',
      pointer: '',
      message: error.message,
    }
    return { ok: false, document: undefined, issues: [issue] }
  }
}

/**
 * Reads a list of turns, or an object with `turns` but no registry, which the specification uses in its
 * examples.
 */
export function parseFragment(text: string, options: ParseOptions = {}): readonly Turn[] {
  const { value } = parseJson(text, options.limits)
  const turns = isObject(value) ? value['turns'] : value
  countWithin(turns, options.limits ?? {})
  const { valid, wellFormed, issues } = validateTurns(turns, options)
  if (!(options.profile ? valid : wellFormed)) throw new InvalidThreadError(issues)
  return turns as readonly Turn[]
}

/**
 * Prints a thread as JSON, compact by default. Text that `parseThread` read is restored byte for byte, except
 * white space.
 */
export function stringifyThread(
  thread: Thread,
  options: { readonly indent?: number } = {},
): string {
  return stringifyJson(thread, options.indent)
}

function read(
  text: string,
  options: ParseOptions,
): { value: unknown; issues: readonly Issue[]; valid: boolean } {
  const { value, duplicates } = parseJson(text, options.limits)
  if (isObject(value)) countWithin(value['turns'], options.limits ?? {})
  const result = validateThread(value, options)
  const { issues } = result
  const valid = options.profile ? result.valid : result.wellFormed
  if (duplicates.length === 0) return { value, issues, valid }
  const severity = severityOf(IssueCode.DuplicateKey, options.profile ?? 'standard')
  const repetitions = duplicates.map((pointer) => ({
    code: IssueCode.DuplicateKey,
    severity,
    pointer,
    message: `${pointer}: the key occurs twice; the last value was taken`,
  }))
  return { value, issues: [...repetitions, ...issues], valid: valid && severity !== 'error' }
}

function countWithin(turns: unknown, limits: ThreadLimits): void {
  if (!Array.isArray(turns)) return
  const { maxTurns = 1_000_000, maxMessages = 4_000_000 } = limits
  if (turns.length > maxTurns) throw new ThreadLimitError('maxTurns', maxTurns, turns.length)
  let messages = 0
  for (const turn of turns) {
    if (isObject(turn) && Array.isArray(turn['messages'])) messages += turn['messages'].length
  }
  if (messages > maxMessages) throw new ThreadLimitError('maxMessages', maxMessages, messages)
}
