import type { JsonValue } from '@skein/base'
import type { Hash } from './envelope.ts'

/**
 * The kinds of evidence. Evidence of type `custom` names its kind in `uaicp:subtype`, as `prefix:name`.
 */
export const EVIDENCE_TYPES = [
  'tool_result',
  'source_citation',
  'test_report',
  'approval_token',
  'custom',
] as const

/** One of `EVIDENCE_TYPES`. */
export type EvidenceType = (typeof EVIDENCE_TYPES)[number]

/**
 * UAICP evidence object. The governor creates it when a governed call completes; an object of the same
 * shape that was made elsewhere is not accepted. `hash` covers the canonical JSON of `payload`.
 */
export interface Evidence {
  readonly evidence_id: string
  readonly evidence_type: EvidenceType
  readonly source: string
  readonly collected_at: string
  readonly hash: Hash
  readonly payload?: JsonValue
  readonly actor?: string
  readonly request_id?: string
  readonly trace_id?: string
  readonly parent_trace_id?: string
  readonly 'uaicp:subtype'?: string
}

/** One kind of evidence that a task class requires before delivery (UAICP §5.1). */
export interface Need {
  readonly type: EvidenceType
  /** The tool that must have produced the evidence. */
  readonly source?: string
  /** For `custom` evidence: the `uaicp:subtype` that the evidence must have. */
  readonly subtype?: string
  /** How many such evidence objects are needed; 1 by default. */
  readonly min?: number
  readonly maxAgeMs?: number
  readonly where?: (evidence: Evidence) => boolean
}

/** A need that was not met: it requires `min` evidence objects, but only `found` were acceptable. */
export interface MissingNeed {
  readonly type: EvidenceType
  readonly source?: string
  readonly subtype?: string
  readonly min: number
  readonly found: number
}

/** The possible results of one check. */
export const CHECK_RESULTS = ['pass', 'fail', 'skip'] as const

/** One check of a verifier, with its result. */
export interface Check {
  readonly check_id: string
  readonly result: (typeof CHECK_RESULTS)[number]
  readonly details?: string
}

/** The possible results of a verification report. Only `pass` allows delivery. */
export const REPORT_STATUSES = ['pass', 'fail', 'partial'] as const

/** UAICP verification report: the checks of one verifier, and the ids of the evidence that it checked. */
export interface VerificationReport {
  readonly report_id: string
  readonly request_id: string
  readonly verifier_id: string
  readonly evidence_ids: readonly string[]
  readonly status: (typeof REPORT_STATUSES)[number]
  readonly checks: readonly Check[]
  readonly generated_at: string
}

/**
 * Stores payloads, such as arguments, results and values of steps. The log contains only hashes of
 * payloads, so that the log can still be verified after a payload was erased. `text` is canonical JSON.
 */
export interface PayloadStore {
  /**
   * Stores a payload. It is called before the journal entry with this hash is written, with the same
   * `durable` as the entry.
   */
  put(hash: Hash, text: string, options?: { readonly durable?: boolean }): void | Promise<void>
  /** Reads a payload; undefined when it was erased or never stored. */
  get(hash: Hash): string | undefined | Promise<string | undefined>
}

/** Creates a payload store in memory, for tests and for runs that need not survive their process. */
export function memoryPayloads(): PayloadStore & { readonly erase: (hash: Hash) => void } {
  const texts = new Map<Hash, string>()
  return {
    put: (hash, text) => void texts.set(hash, text),
    get: (hash) => texts.get(hash),
    erase: (hash) => void texts.delete(hash),
  }
}
