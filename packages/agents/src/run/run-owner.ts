import { isPlainObject } from '@skein/base'
import { invalidUse } from '../contract/agent-error.ts'
import type { GenerateResult } from '../contract/agent-types.ts'
import type { AgentState } from '../state/state.ts'

/** Returns the given state; throws if it is not a state. */
export function checkState(state: unknown): AgentState {
  if (isState(state)) return state
  throw invalidUse(
    'An agent needs a state.',
    'Pass AgentState.initial(), the state of an earlier result, or AgentState.fromJSON(…).',
  )
}

/** Checks the shape, so that a state of another copy of this package is accepted too. */
function isState(value: unknown): value is AgentState {
  return typeof (value as Partial<AgentState> | null | undefined)?.withMessages === 'function'
}

/** The session and agent of a run, written into the metadata of its states. */
export interface RunOwner {
  readonly sessionId?: string | undefined
  /** Set only with a checkpoint store, whose metadata contains the agent id. */
  readonly agentId?: string | undefined
}

/** Adds the session id and, with a checkpoint store, the agent id to the state's metadata (UAP §3.4). */
export function withOwner(state: AgentState, owner: RunOwner): AgentState {
  let next = state
  for (const [name, id] of Object.entries(owner))
    if (id !== undefined && next.metadata[name] !== id) next = next.withMetadata(name, id)
  return next
}

/** Returns a result with the session and agent id in its state; throws if it is not a result. */
export function checkResult(
  result: GenerateResult,
  maker: string,
  owner: RunOwner,
): GenerateResult {
  if (!isState(result?.state) || !isPlainObject(result.turn))
    throw invalidUse(`${maker} did not return { turn, state }.`)
  const state = withOwner(result.state, owner)
  return state === result.state ? result : { ...result, state }
}
