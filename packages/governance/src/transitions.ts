import type { State } from './envelope.ts'

/**
 * Every transition there is (§4.1, A-05). A failure in `execute` is repaired by way of `verify`.
 * Nothing leads out of `deliver` and `fail_safe`.
 */
export const TRANSITIONS: Readonly<Record<State, readonly State[]>> = {
  intake: ['plan', 'fail_safe'],
  plan: ['execute', 'fail_safe'],
  execute: ['verify', 'fail_safe'],
  verify: ['deliver', 'plan', 'execute', 'fail_safe'],
  deliver: [],
  fail_safe: [],
}

/** True when the table has the transition. */
export function canTransition(from: State, to: State): boolean {
  return TRANSITIONS[from].includes(to)
}

/** True for the two ends. */
export function isTerminal(state: State): boolean {
  return TRANSITIONS[state].length === 0
}
