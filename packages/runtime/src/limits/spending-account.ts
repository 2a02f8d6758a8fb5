import type { SpendingRule } from '../contract/operator-limits.ts'
import type { ThreadHead } from '../store/head.ts'

/** What is limited. Costs are counted in billionths of a dollar, because whole numbers add up exactly. */
export const MEASURES = ['nanoUsd', 'tokens', 'inferences'] as const

type Measure = (typeof MEASURES)[number]

/** An amount of each measure. */
export type Amounts = Readonly<Record<Measure, number>>

/** Costs are counted in whole billionths of a dollar. */
export const NANO = 1e9

/** The tenant and the user that an inference is counted for. */
export type Spender = Pick<ThreadHead, 'tenant' | 'owner'>

/** The counters of a tenant or user in one period, and the limits that hold for them. */
export interface SpendingAccount {
  readonly rule: SpendingRule
  readonly name: string
  readonly prefix: string
  readonly until: number
  readonly max: Partial<Amounts>
}
