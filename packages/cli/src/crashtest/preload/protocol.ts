/** The variable by which a process finds out that it is tested. Its value is a `Preloaded` as JSON. */
export const VARIABLE = 'SKEIN_CRASHTEST'

/** Headers that lead a request to the recorder; the recorder removes them. */
export const TARGET_HEADER = 'x-skein-crashtest-target'
export const STEP_HEADER = 'x-skein-crashtest-step'
export const TOKEN_HEADER = 'x-skein-crashtest-token'

/** What a step of a program is: a request that it sends, a commit of `node:sqlite`, a call of a tool. */
export type StepKind = 'request' | 'commit' | 'tool'

/** Whether the process dies before a step has any effect, or after it, before the program sees the result. */
export type When = 'before' | 'after'

/** One step of a program. Its number is its place among all steps of one start, from 1. */
export interface ProgramStep {
  readonly number: number
  readonly kind: StepKind
  readonly name: string
}

/** What the processes of a program get. */
export interface Preloaded {
  /** The address of the recorder: `http://127.0.0.1:41733`. */
  readonly recorder: string
  readonly token: string
  /** A folder with what the processes note: `steps`, `effects`, `refused`, `pids`, and the file `group`. */
  readonly notes: string
  /** The address of the preload, for Node children. */
  readonly preload: string
  /** Where this start dies. Without it, it does not. */
  readonly crash?: { readonly step: number; readonly when: When }
  /** Patterns of requests that are no steps. */
  readonly ignored: readonly string[]
  /** Hosts that may be reached although they are not this machine. */
  readonly allowedHosts: readonly string[]
}

/** What a program of Skein finds at `globalThis[CRASHTEST]` while it is tested. */
export interface Crashtest {
  /** Begins a step; may not return. Returns its number. */
  step(kind: StepKind, name: string): number
  /** Ends a step; may not return. */
  done(step: number): void
  /** Notes a change of the world that no request shows. */
  effect(text: string): void
}

export const CRASHTEST: unique symbol = Symbol.for('skein.crashtest')
