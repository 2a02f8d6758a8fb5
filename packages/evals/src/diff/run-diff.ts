import type { JsonValue } from '@skein/base'

/** How two runs differ. */
export interface RunDiff {
  readonly before: string
  readonly after: string
  readonly isSame: boolean
  /** The number of the first pair that differs, from 0; absent if none does. */
  readonly firstDivergence?: number | undefined
  readonly steps: readonly StepPair[]
  readonly deltas: RunDeltas
}

/** Two steps that belong together, or one that the other run does not have. */
export interface StepPair {
  readonly before?: RunStep | undefined
  readonly after?: RunStep | undefined
  readonly isSame: boolean
  /** For texts: the words that differ. For data: the paths that differ. */
  readonly changes: readonly StepChange[]
}

/** One message or call of a run. */
export type RunStep =
  | { readonly type: 'message'; readonly from: 'user' | 'agent'; readonly text: string }
  | {
      readonly type: 'call'
      readonly toolName: string
      readonly arguments: JsonValue
      readonly outcome?: string | undefined
      readonly result?: JsonValue | undefined
      readonly approval?: string | undefined
    }

/** One part of a step that differs. */
export type StepChange =
  | { readonly type: 'text'; readonly parts: readonly TextPiece[] }
  | {
      readonly type: 'json'
      /** A JSON pointer, with the member of the step in front, e.g. `/arguments/amount`. */
      readonly path: string
      readonly before?: JsonValue | undefined
      readonly after?: JsonValue | undefined
    }

/** A piece of a text: in both texts, or in one. */
export interface TextPiece {
  readonly in: 'both' | 'before' | 'after'
  readonly text: string
}

/** What the second run used, more (or less) than the first. */
export interface RunDeltas {
  readonly inputTokens: number
  readonly outputTokens: number
  /** Null if a price is unknown. */
  readonly costUsd: number | null
  readonly steps: number
  readonly calls: number
  readonly durationMs: number
  readonly modelMs: number
  readonly gates: CountDelta
  readonly evidence: CountDelta
}

/** Entries that only one of two runs has. */
export interface CountDelta {
  readonly onlyBefore: readonly string[]
  readonly onlyAfter: readonly string[]
}
