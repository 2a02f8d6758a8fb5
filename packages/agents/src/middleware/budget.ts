import { type Message, messageToJSON } from '@skein/ai'
import { systemClock, type Clock } from '@skein/base'
import { unknownCost } from '../contract/agent-error.ts'
import { isUnpriced, needsCost, withCost } from '../contract/cost-condition.ts'
import type { AgentState } from '../state/state.ts'
import type { RunTotals } from '../state/state-types.ts'
import type { InferenceRequest } from '../contract/agent-types.ts'

/** A function for `strategy.stopCondition`, which is called after every step. */
export type StopCondition = (state: AgentState, totals: RunTotals) => boolean | Promise<boolean>

/** Returns a condition that stops a run when the run and its sub-agents have used `tokens` tokens. */
export function maxTokens(tokens: number): StopCondition {
  return (_, { usage }) => usage.totalTokens >= tokens
}

/**
 * Returns a condition that stops a run when the run and its sub-agents have cost `usd` dollars. Costs are
 * reported by the vendor or computed by `costMiddleware` of `@skein/ai`, which each agent needs in its
 * `llmMiddleware`. A run fails after its first inference whose cost is not known, also if that is one of a sub-agent,
 * and `agent()` throws if it is certain that the cost of the model will not be known.
 */
export function maxCost(usd: number): StopCondition {
  return withCost((_, { usage }) => {
    if (isUnpriced(usage)) throw unknownCost('this run')
    return (usage.costUsd ?? 0) >= usd
  })
}

/**
 * Returns a condition that stops a run after `milliseconds` of work, without the time in which it waited for
 * answers. If the state's metadata has a `startTime` (UAP §10.3), the time since then counts instead. A step
 * that has started is finished; for a hard limit use a signal.
 */
export function maxTime(
  milliseconds: number,
  { clock = systemClock }: { readonly clock?: Clock } = {},
): StopCondition {
  return ({ metadata: { startTime } }, { durationMs }) => {
    const elapsedMs = typeof startTime === 'number' ? clock.now() - startTime : durationMs
    return elapsedMs >= milliseconds
  }
}

/** Returns a condition that stops a run after `count` steps, with those of sub-agents that share its budget. */
export function maxSteps(count: number): StopCondition {
  return (_, { steps }) => steps >= count
}

/** Returns a condition that stops a run when any of the given conditions holds. */
export function anyOf(...conditions: readonly StopCondition[]): StopCondition {
  const any: StopCondition = async (state, totals) => {
    for (const condition of conditions) if (await condition(state, totals)) return true
    return false
  }
  return conditions.some(needsCost) ? withCost(any) : any
}

/** Estimates the tokens of a message. */
export type EstimateTokens = (message: Message) => number
const tokenCounts = new WeakMap<Message, number>()
/** Estimates one token per four characters of JSON. Rough but cheap; computed once per message. */
export function estimateTokens(message: Message): number {
  const before = tokenCounts.get(message)
  if (before !== undefined) return before
  let tokens = 0
  try {
    tokens = JSON.stringify(messageToJSON(message)).length / 4
  } catch {
    // A message with a value that JSON cannot express, e.g. a bigint, counts as 0 tokens; saving the state
    // reports the value.
  }
  tokenCounts.set(message, tokens)
  return tokens
}
/** Estimates the tokens of messages as the vendor receives them: without ids and times, which are not sent. */
export function contentTokens(messages: readonly Message[]): number {
  return messages.reduce((sum, message) => sum + toLine(message).length / 4, 0)
}
export function sumTokens(messages: readonly Message[], estimate: EstimateTokens): number {
  return messages.reduce((sum, message) => sum + estimate(message), 0)
}

export function toLine(message: Message): string {
  const { type, content, toolCalls, results } = messageToJSON(message)
  return JSON.stringify(results ? { type, results, toolCalls } : { type, content, toolCalls })
}

/**
 * Returns a function that counts the tokens of a request with these messages. The vendor's count of the last
 * inference is the base: it includes the system prompt and the tools. Messages that were added or left out
 * since are estimated, corrected if the vendor counted fewer tokens than the estimate did.
 */
export function tokenCounter(
  { last }: InferenceRequest,
  estimate: EstimateTokens,
): (messages: readonly Message[]) => number {
  const inputTokens = last?.usage.inputTokens ?? 0
  const estimateOfLast = last ? sumTokens(last.messages, estimate) : 0
  if (inputTokens === 0 || estimateOfLast === 0) return (messages) => sumTokens(messages, estimate)
  const scale = Math.min(1, inputTokens / estimateOfLast)
  const overhead = Math.max(0, inputTokens - estimateOfLast)
  return (messages) => overhead + scale * sumTokens(messages, estimate)
}

/**
 * Finds by binary search the first index up to `last` that passes. Every index after a passing one must pass
 * too.
 */
export function firstIndex(last: number, passes: (index: number) => boolean): number {
  let [low, high] = [0, last]
  while (low < high) {
    const middle = (low + high) >> 1
    if (passes(middle)) high = middle
    else low = middle + 1
  }
  return low
}
