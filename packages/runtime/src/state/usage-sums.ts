import type { KernelState } from './kernel-state.ts'

/** Adds the tokens of one answer, as ThreadProtocol names them. */
export function addTokens(usage: KernelState['usage'], used: object): void {
  const { input_tokens, output_tokens, cache_read_tokens } = used as Record<
    string,
    number | null | undefined
  >
  usage.tokens += (input_tokens ?? 0) + (output_tokens ?? 0)
  usage.outputTokens += output_tokens ?? 0
  usage.cachedTokens += cache_read_tokens ?? 0
}

/** Adds the cost of one answer; an answer whose cost is not known is counted instead. */
export function addCost(usage: KernelState['usage'], costUsd: number | undefined): void {
  if (costUsd === undefined) usage.unpriced++
  else usage.costUsd += costUsd
}
