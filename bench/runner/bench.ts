/** One side of a comparison. It runs in processes of its own. */
export interface Contender {
  /** Packages of `peers/bench` it needs; it is left out when they are not wanted. */
  readonly peers?: readonly string[]
  /** False for a contender that does less on purpose, a floor; its output is then not compared. */
  readonly sameOutput?: boolean
  /** Loads and builds everything the timed part needs, and returns the timed part. */
  readonly prepare: () => Timed | Promise<Timed>
}

/** What is timed: one repetition. Its output is compared with the baseline's. */
export type Timed = () => unknown

/** What a `*.bench.ts` file exports as default. */
export interface Bench {
  readonly title: string
  /** The contender that is 1.00x. */
  readonly baseline: string
  readonly contenders: Readonly<Record<string, Contender>>
  /** `cpu` and `wall` are measured around a repetition; `returned` is what it answers with `measured`. */
  readonly measure?: 'wall' | 'cpu' | 'returned'
  /** Unit of a returned measure. Default `ms`. */
  readonly unit?: string
  /** How much one repetition handles, for a rate in addition to the time. */
  readonly amount?: { readonly value: number; readonly unit: string }
  /** Untimed repetitions at the start of each process. Default 5. */
  readonly warmups?: number
  /** Timed repetitions in each process. Default 15. */
  readonly repetitions?: number
  /** Fresh processes per contender, taken in turns. Default 3. */
  readonly processes?: number
}

/** A value the contender measured by itself (a stall, a size), with the output to compare. */
export class Measured {
  readonly value: number
  readonly output: unknown

  constructor(value: number, output: unknown) {
    this.value = value
    this.output = output
  }
}

/** Answers a repetition of a `returned` bench. */
export function measured(value: number, output?: unknown): Measured {
  return new Measured(value, output)
}
