import { canonicalJson, type JsonObject, type JsonValue, sha256Hex } from '@skein/base'
import type { Action } from './policy.ts'

/** The UAICP version that this package writes. It reads 0.2.x and 0.3.x. */
export const UAICP_VERSION = '0.3'

/** The six phases of a run. A run ends in `deliver` or `fail_safe`. */
export const STATES = ['intake', 'plan', 'execute', 'verify', 'deliver', 'fail_safe'] as const

/** One of `STATES`. */
export type State = (typeof STATES)[number]

/** The possible outcomes of the event that an envelope (a line of the log) records. */
export const OUTCOMES = ['success', 'failure', 'uncertain', 'pending'] as const

/** One of `OUTCOMES`. */
export type Outcome = (typeof OUTCOMES)[number]

/** How much freedom the acting agent has, from most to least. */
export const CONTROL_CLASSES = ['autonomous', 'human-supervised', 'human-directed'] as const

/** One of `CONTROL_CLASSES`. */
export type ControlClass = (typeof CONTROL_CLASSES)[number]

/** The risk tiers of tools, from lowest to highest. */
export const RISKS = ['read_only', 'write_low_risk', 'write_high_risk'] as const

/** One of `RISKS`. */
export type Risk = (typeof RISKS)[number]

/** A SHA-256 hash over canonical JSON (RFC 8785): `sha256:` and 64 lower-case hex digits. */
export type Hash = `sha256:${string}`

/** The actor of a logged event (UAICP §5.4): the governor, the agent, or a person. */
export interface Actor {
  readonly type: 'system' | 'agent' | 'human'
  readonly id: string
}

/**
 * Which agent acts, for which owner and user, and how much freedom the agent has (`control_class`).
 * Further members are namespaced (`prefix:name`).
 */
export interface Identity {
  readonly agent_id: string
  readonly owner_id: string
  readonly user_id?: string
  readonly control_class: ControlClass
  readonly [namespaced: `${string}:${string}`]: JsonValue
}

/**
 * How to undo a write (UAICP §5.3). `tool_call` runs the tool named by `target` with `payload`. `impossible`
 * says that the write of the tool `target` cannot be undone; only the declaration of the tool can say so.
 */
export interface RollbackAction {
  readonly type: 'tool_call' | 'restore' | 'manual' | 'impossible' | (string & {})
  readonly target: string
  readonly payload: JsonObject | string
}

/** Position of a chunk in a stream (UAICP §4.2). Before delivery `uaicp:verified` is false. */
export interface Streaming {
  readonly chunk_id: string
  readonly is_final: boolean
  readonly stream_index: number
  readonly [namespaced: `${string}:${string}`]: JsonValue
}

/** UAICP message envelope: one line of the audit log. Extensions are members of `metadata`. */
export interface Envelope {
  readonly uaicp_version: string
  readonly request_id: string
  readonly trace_id: string
  readonly parent_trace_id?: string
  readonly state: State
  readonly timestamp: string
  readonly identity: Identity
  readonly outcome: Outcome
  readonly streaming?: Streaming
  readonly rollback_action?: RollbackAction
  readonly metadata?: JsonObject
}

/** True when `risk` is at or above `floor`. */
export function isAtLeast(risk: Risk, floor: Risk): boolean {
  return RISKS.indexOf(risk) >= RISKS.indexOf(floor)
}

/**
 * True for the supported versions 0.2.x and 0.3.x. Before 1.0 each minor version is a contract of its own
 * (UAICP §9).
 */
export function isSupportedVersion(version: string): boolean {
  return /^0\.[23](?:\.(?:0|[1-9]\d*))?$/.test(version)
}

/**
 * All allowed transitions (UAICP §4.1). After a failure in `execute`, a request has to pass through
 * `verify` before its next attempt. No transition leads out of `deliver` and `fail_safe`.
 */
export const TRANSITIONS: Readonly<Record<State, readonly State[]>> = {
  intake: ['plan', 'fail_safe'],
  plan: ['execute', 'fail_safe'],
  execute: ['verify', 'fail_safe'],
  verify: ['deliver', 'plan', 'execute', 'fail_safe'],
  deliver: [],
  fail_safe: [],
}

/** True when `TRANSITIONS` allows this transition. */
export function canTransition(from: State, to: State): boolean {
  return TRANSITIONS[from].includes(to)
}

/** True for the two states that end a request. */
export function isTerminal(state: State): boolean {
  return TRANSITIONS[state].length === 0
}

/**
 * Returns a UUID that is the same for the same text. A UUIDv8 (RFC 9562 §5.8) may contain any bits, here
 * those of the hash, and has the form that the schema requires.
 */
export function uuidOf(text: string): string {
  const hex = sha256Hex(text)
  const variant = ((Number.parseInt(hex[16]!, 16) & 3) | 8).toString(16)
  const parts = [hex.slice(0, 8), hex.slice(8, 12), `8${hex.slice(13, 16)}`]
  return [...parts, variant + hex.slice(17, 20), hex.slice(20, 32)].join('-')
}

/**
 * Returns the hash of a JSON value: `sha256:` over its canonical text. Throws if the value cannot be
 * expressed in JSON.
 */
export function hashJson(value: unknown): Hash {
  return hashText(canonicalJson(value))
}

/** Returns the canonical text of a value; undefined if it cannot be expressed in JSON. */
export function tryCanonicalJson(value: unknown): string | undefined {
  try {
    return canonicalJson(value)
  } catch {
    // The error is dropped, because callers report such a value with a reason of their own.
    return undefined
  }
}

/** Parses JSON and freezes the value with everything in it. */
export function parseFrozen<T extends JsonValue>(text: string): T {
  return freezeJson(JSON.parse(text) as T)
}

/** Freezes a value that nothing else holds, with all objects and arrays in it. */
export function freezeJson<T>(value: T): T {
  // An object that is frozen already is not entered again, so that a cycle of objects ends.
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value
  Object.freeze(value)
  for (const key in value) freezeJson(value[key])
  return value
}

/** Returns the hash of a text that is already canonical JSON. */
export function hashText(canonical: string): Hash {
  return `sha256:${sha256Hex(canonical)}`
}

/**
 * Returns the digest that an approval is bound to. It covers the request, call, tool, risk, arguments,
 * identity, rollback action and policies; if any of them changes, a new approval is needed.
 */
export function actionDigest(action: Action): Hash {
  const { request_id, call_id, tool, risk, args_hash, identity, rollback, policy_hash, round } =
    action
  const act = { request_id, call_id, tool, risk, args_hash, identity, rollback, policy_hash }
  return hashJson(round === undefined ? act : { ...act, round })
}

/**
 * One fault of a stream of chunks. `gap`: a chunk is missing. `duplicate`: a chunk arrived twice. `late`: a
 * chunk came after the final one. `open`: the final chunk is missing.
 */
interface ChunkFault {
  readonly type: 'gap' | 'duplicate' | 'late' | 'open'
  /** The index that is missing, late or arrived twice; for `open`, the index that was expected next. */
  readonly stream_index: number
}

/**
 * Finds missing, repeated and late chunks of one request, and a missing final chunk. `chunks` are in the order
 * of their arrival.
 */
export function checkChunks(chunks: readonly Pick<Envelope, 'streaming'>[]): ChunkFault[] {
  const faults: ChunkFault[] = []
  let next = 0
  let isFinished = false
  for (const { streaming } of chunks) {
    if (!streaming) continue
    const { stream_index } = streaming
    for (; next < stream_index; next++) faults.push({ type: 'gap', stream_index: next })
    if (stream_index < next) faults.push({ type: 'duplicate', stream_index })
    else {
      next = stream_index + 1
      if (isFinished) faults.push({ type: 'late', stream_index })
    }
    isFinished ||= streaming.is_final
  }
  if (!isFinished) faults.push({ type: 'open', stream_index: next })
  return faults
}
