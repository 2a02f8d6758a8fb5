import type { JsonObject } from '@skein/base'
import { headOf, type ApiContext } from './api-context.ts'
import type { CostReport } from '../contract/cost-report.ts'
import type { CostUsd } from '../contract/thread-info.ts'
import { modelLogs } from '../model/read-log.ts'
import { descendantsOf } from '../store/descendants.ts'

/** Sums what a thread and its descendants have spent on models. */
export async function costReport(context: ApiContext, threadId: string): Promise<CostReport> {
  const head = await headOf(context, threadId)
  const total: Spent = { tokens: 0, costUsd: 0 }
  const byModel: Record<string, Spent & { calls: number }> = {}
  const byThread: Record<string, Spent & { agent: string }> = {}
  for (const { id, agent } of [head, ...(await descendantsOf(context, head))]) {
    const own = (byThread[id] = { agent, tokens: 0, costUsd: 0 })
    const add = (
      usage: JsonObject | undefined,
      costUsd: CostUsd | undefined,
      ...sums: Spent[]
    ): void => {
      // Reasoning and cached tokens are already included in `input_tokens` and `output_tokens`.
      const tokens = Number(usage?.['input_tokens'] ?? 0) + Number(usage?.['output_tokens'] ?? 0)
      for (const sum of [total, own, ...sums]) {
        sum.tokens += tokens
        // One unknown cost makes the sum unknown.
        sum.costUsd = sum.costUsd === null || costUsd == null ? null : sum.costUsd + costUsd
      }
    }
    const log = await context.store.events(id)
    const requests = modelLogs(log)
    const logIds = new Set(requests.map(({ logId }) => logId))
    // Threads that older versions have erased have answers without their requests.
    for (const { event } of log) {
      if (event.type !== 'model_answered' || logIds.has(event.logId)) continue
      logIds.add(event.logId)
      if (event.usage) add(event.usage, event.costUsd)
    }
    // Some costs, such as those of summaries, are recorded only as `usage_recorded`. An event whose request is
    // also in the log of requests is skipped, because the request is counted below.
    for (const { event } of log)
      if (event.type === 'usage_recorded' && !logIds.has(event.logId ?? ''))
        add(event.usage as JsonObject, event.costUsd)
    for (const { provider, model, usage, costUsd } of requests) {
      const sum = (byModel[`${provider}/${model}`] ??= { tokens: 0, costUsd: 0, calls: 0 })
      sum.calls++
      // A request that failed before it used anything, or was not answered yet, costs nothing.
      add(usage, usage === undefined ? 0 : costUsd, sum)
    }
  }
  return { threadId, ...total, byModel, byThread }
}

interface Spent {
  tokens: number
  costUsd: CostUsd
}
