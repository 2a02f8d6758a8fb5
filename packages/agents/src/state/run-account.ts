import { isPlainObject } from '@skein/base'
import { type TokenUsage } from '@skein/ai'
import { addUsage, zeroUsage } from '@skein/ai/engine'
import { misfit, type DataRule } from './data-rule.ts'
import type { AgentStateJSON, RunAccount, SubagentExecutionTrace } from './state-types.ts'

/** Returns the account of a new run: the counters of its steps, tokens and time, all zero. */
export function newAccount(id: string, origin?: string): RunAccount {
  const account = {
    id,
    revision: 0,
    steps: 0,
    subagentSteps: 0,
    durationMs: 0,
    usage: zeroUsage,
    subagentUsage: zeroUsage,
  }
  return origin === undefined ? account : { ...account, origin }
}

/** Returns the tokens of a sub-agent and of all its nested sub-agents. */
export function usageOfTrace({
  usage = zeroUsage,
  children = [],
}: SubagentExecutionTrace): TokenUsage {
  return children.map(usageOfTrace).reduce(addUsage, usage)
}

/** What a stored run and all its sub-agents have used. */
export interface Spending {
  readonly usage: TokenUsage
  readonly steps: number
}

/** Returns what the run of a stored state has used, with sub-agents that ended and those that still wait. */
export function spendingOf({
  run,
  suspension,
}: Pick<AgentStateJSON, 'run' | 'suspension'>): Spending {
  if (!run) return { usage: zeroUsage, steps: 0 }
  let usage = addUsage(run.usage, run.subagentUsage)
  let steps = run.steps + run.subagentSteps
  for (const { request } of suspension?.deferred ?? []) {
    const inner = isPlainObject(request.request) ? request.request['state'] : undefined
    if (request.kind !== 'child' || !isPlainObject(inner)) continue
    // `AgentState.fromJSON` checks a child's state before it runs; here a damaged state is left out of the
    // sum.
    const child = inner as unknown as AgentStateJSON
    if (misfit(child.run, accountRule) !== undefined) continue
    const spending = spendingOf(child)
    usage = addUsage(usage, spending.usage)
    steps += spending.steps
  }
  return { usage, steps }
}

const count: DataRule = (value) =>
  typeof value === 'number' && value >= 0 ? undefined : 'a number from 0'

/** What stored counts of tokens must look like. Older programs do not count the tokens of caches. */
export const usageRule: DataRule = {
  inputTokens: count,
  outputTokens: count,
  totalTokens: count,
  'cacheReadTokens?': count,
  'cacheWriteTokens?': count,
  'costUsd?': count,
}

/** What the stored account of a run (steps, tokens, time) must look like. */
export const accountRule: DataRule = {
  id: 'string',
  'origin?': 'string',
  revision: count,
  steps: count,
  'rounds?': count,
  'replans?': count,
  subagentSteps: count,
  durationMs: count,
  usage: usageRule,
  subagentUsage: usageRule,
}
