import type { JsonObject } from '@skein/base'
import type { CostReport } from '../runtime-api.ts'
import { modelLogs } from '../model/log.ts'
import { headOf, type ApiContext } from './api-context.ts'
import { descendantsOf } from '../store/descendants.ts'

interface Sum {
  tokens: number
  costUsd: number
}

/** What a thread and its descendants have spent on models. */
export async function costOf(context: ApiContext, threadId: string): Promise<CostReport> {
  const head = await headOf(context, threadId)
  const total: Sum = { tokens: 0, costUsd: 0 }
  const byModel: Record<string, Sum & { calls: number }> = {}
  const byThread: Record<string, Sum & { agent: string }> = {}
  for (const { id, agent } of [head, ...(await descendantsOf(context, head))]) {
    const own = { agent, tokens: 0, costUsd: 0 }
    byThread[id] = own
    const events = await context.store.events(id)
    // Summaries, first instructions, failed requests: spent without a message to show for it.
    for (const { event } of events) {
      if (event.type !== 'usage_recorded') continue
      for (const part of [total, own]) {
        part.tokens += tokensOf(event.usage as JsonObject)
        part.costUsd += event.costUsd ?? 0
      }
    }
    for (const { provider, model, usage, costUsd = 0 } of modelLogs(events)) {
      const sum = (byModel[`${provider}/${model}`] ??= { tokens: 0, costUsd: 0, calls: 0 })
      sum.calls++
      for (const part of [total, own, sum]) {
        part.tokens += tokensOf(usage)
        part.costUsd += costUsd
      }
    }
  }
  return { threadId, ...total, byModel, byThread }
}

/** Thinking and cached tokens are parts of these two. */
function tokensOf(usage: JsonObject | undefined): number {
  return Number(usage?.['input_tokens'] ?? 0) + Number(usage?.['output_tokens'] ?? 0)
}
