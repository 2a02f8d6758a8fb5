import { zeroUsage } from '@skein/ai/engine'
import { tokenCost } from '@skein/ai/middleware'
import { NANO, type Amounts } from './spending-account.ts'
import type { Held } from './spending.ts'
import type { ResolvedModel } from '../definitions/resolved.ts'
import type { ThreadHead } from '../store/head.ts'

/** The names of all records of reservations begin with this text. */
export const RECORDS = 'limit kept '

/** The prefix of the counters that record the reservations of a thread. */
export function recordsOf(threadId: string): string {
  return `${RECORDS}${JSON.stringify(threadId)} `
}

/** Returns the name of the record of a reservation. The name contains everything that is needed to settle it. */
export function recordOf(
  { id, epoch }: Pick<ThreadHead, 'id' | 'epoch'>,
  number: number,
  held: readonly Held[],
): string {
  const accounts = held.map(({ account: { prefix }, amounts, lost }) => [prefix, amounts, lost])
  return `${recordsOf(id)}${JSON.stringify([epoch, number, accounts])}`
}

/** Reads the name of a counter that records a reservation. */
export function parsedRecord(name: string): {
  readonly epoch: number
  readonly held: readonly Held[]
} {
  type Stored = readonly [
    epoch: number,
    number: number,
    accounts: readonly [prefix: string, amounts: Amounts, lost: Amounts][],
  ]
  const [epoch, , accounts] = JSON.parse(name.slice(name.indexOf('" [') + 2)) as Stored // `recordOf` wrote it
  const holds = accounts.map(([prefix, amounts, lost]): Held => {
    return { account: { prefix, max: {} }, amounts, lost }
  })
  return { epoch, held: holds }
}

/** Returns what counts as spent for an inference whose process died: only its input is known. */
export function lostOf({ price }: ResolvedModel, inputTokens: number): Amounts {
  const usage = { ...zeroUsage, inputTokens, totalTokens: inputTokens }
  const costUsd = price ? tokenCost(usage, price) : 0
  return { nanoUsd: Math.ceil(costUsd * NANO), tokens: inputTokens, inferences: 1 }
}
