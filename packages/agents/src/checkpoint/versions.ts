import { isDeepFrozen, isPlainObject } from '@skein/base'
import type { CheckpointMetadata, CheckpointStore } from '../contract/checkpoint-store.ts'
import { invalidUse } from '../contract/agent-error.ts'
import type { AgentStateJSON } from '../state/state-types.ts'
import { CheckpointConflict } from './checkpoint-conflict.ts'
import { stateText } from './saved-state.ts'
import { isSame, LISTS, sharedItems } from './packed-tree.ts'

// A store keeps every version of a session as a chain: a whole state, then changes. As soon as the changes are
// together as long as the whole state was, the next version is whole again. So the bytes written grow linearly
// with the steps, and reading any version reads at most about twice its own size.

/** What changed from one version to the next. */
interface StateChange {
  /** New values of fields that are no lists. */
  readonly set: Readonly<Record<string, unknown>>
  /** Names of fields that are gone. */
  readonly drop: readonly string[]
  /** For each changed list: how many items stay, and which follow. */
  readonly lists: Readonly<
    Record<string, { readonly keep: number; readonly add: readonly unknown[] }>
  >
}

/** One version as it is written. */
export interface EncodedVersion {
  readonly isWhole: boolean
  readonly text: string
}

/** The changes that follow a whole state may be this long together, even if the state is shorter. */
const SMALL_STATE = 16_384

/** Encodes the versions of one session, one after the other. */
export class VersionWriter {
  #last: AgentStateJSON | undefined
  #wholeLength = 0
  #changeLength = 0

  /** The state of the newest version. */
  get last(): AgentStateJSON | undefined {
    return this.#last
  }

  /**
   * Encodes the next version. The state must not be changed afterwards (`ownCopy` makes a safe copy), because
   * the following call of `encode` compares its state with this one.
   */
  encode(state: AgentStateJSON): EncodedVersion {
    const change = this.#last && JSON.stringify(changeOf(this.#last, state))
    this.#last = state
    const limit = Math.max(this.#wholeLength, SMALL_STATE)
    if (change !== undefined && this.#changeLength + change.length <= limit) {
      this.#changeLength += change.length
      return { isWhole: false, text: change }
    }
    const text = stateText(state)
    this.#wholeLength = text.length
    this.#changeLength = 0
    return { isWhole: true, text }
  }
}

/** One version as it was read: the JSON value of its text. */
export interface ReadVersion {
  readonly isWhole: boolean
  readonly value: unknown
}

/** Returns the last state of a chain of versions: a whole state, then changes. Throws if the chain is damaged. */
export function decodeVersions(chain: readonly ReadVersion[]): AgentStateJSON {
  let state: AgentStateJSON | undefined
  for (const { isWhole, value } of chain) {
    if (isWhole)
      state = value as AgentStateJSON // what `encode` wrote; a run checks it in `fromJSON`
    else if (state && isChange(value)) state = withChange(state, value)
    else throw new TypeError('a change has no state that it belongs to')
  }
  if (!state) throw new TypeError('there is no whole state')
  return state
}

function changeOf(before: AgentStateJSON, after: AgentStateJSON): StateChange {
  const [old, next] = [before, after].map((state) => ({ ...state }) as Record<string, unknown>)
  const lists: Record<string, { keep: number; add: readonly unknown[] }> = {}
  for (const name of LISTS) {
    const [had, has] = [old![name], next![name]]
    if (!Array.isArray(had) || !Array.isArray(has)) continue
    delete old![name]
    delete next![name]
    const keep = sharedItems(has, had)
    if (keep < had.length || keep < has.length) lists[name] = { keep, add: has.slice(keep) }
  }
  const set: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(next!))
    if (!isSame(old![name], value)) set[name] = value
  const drop = Object.keys(old!).filter((name) => next![name] === undefined)
  return { set, drop, lists }
}

function isChange(value: unknown): value is StateChange {
  return (
    isPlainObject(value) &&
    isPlainObject(value['set']) &&
    isPlainObject(value['lists']) &&
    Array.isArray(value['drop'])
  )
}

function withChange(state: AgentStateJSON, { set, drop, lists }: StateChange): AgentStateJSON {
  const next: Record<string, unknown> = { ...state, ...set }
  for (const name of drop) delete next[name]
  for (const [name, { keep, add }] of Object.entries(lists)) {
    const had = (state as unknown as Record<string, unknown>)[name]
    next[name] = [...(Array.isArray(had) ? had.slice(0, keep) : []), ...add]
  }
  return next as unknown as AgentStateJSON // a state with fields and items of another state
}

/** Returns a copy that no one else can change: deep-frozen messages are shared, everything else is copied. */
export function ownCopy({ messages, ...rest }: AgentStateJSON): AgentStateJSON {
  return {
    ...plainCopy(rest),
    messages: messages.map((message) => (isDeepFrozen(message) ? message : plainCopy(message))),
  }
}

function plainCopy<T>(value: T): T {
  return JSON.parse(JSON.stringify(value)) as T // JSON data does not change in a round trip
}

/**
 * Throws a conflict unless the newest version is the expected one. If `expected` is undefined, nothing is
 * checked.
 */
export function checkExpected(
  sessionId: string,
  expected: string | null | undefined,
  newest: CheckpointMetadata | null | undefined,
): void {
  const currentId = newest?.checkpointId ?? null
  if (expected !== undefined && expected !== currentId)
    throw new CheckpointConflict(sessionId, { expected, found: currentId })
}

/**
 * Copies one version of a session into a new session, which then continues from there. The original session
 * stays as it is. Returns the state of the new session.
 *
 *     const [first] = await store.history('chat')
 *     await forkCheckpoint(store, { sessionId: 'chat', checkpointId: first.checkpointId, to: 'chat-2' })
 */
export async function forkCheckpoint(
  store: CheckpointStore,
  from: { readonly sessionId: string; readonly checkpointId?: string; readonly to: string },
): Promise<AgentStateJSON> {
  const { sessionId, checkpointId, to } = from
  const state =
    checkpointId === undefined
      ? await store.load(sessionId)
      : await store.loadVersion?.(sessionId, checkpointId)
  if (!state)
    throw invalidUse(
      `The session ${JSON.stringify(sessionId)} has no version ${JSON.stringify(checkpointId ?? 'newest')}.`,
      'See `store.history(sessionId)`; a store of your own needs `loadVersion`.',
    )
  const copy = { ...state, metadata: { ...state.metadata, sessionId: to } }
  await store.save(to, copy, { expected: null })
  return copy
}
