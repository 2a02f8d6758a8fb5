import type { DrainContext } from '../context/drain-context.ts'
import { budgetReason } from '../contract/usage.ts'

/**
 * Checks the budget before a model request. Returns a sentence that names the limit of the thread or of its
 * tree that is reached; undefined when no limit is reached.
 */
export async function overBudget(context: DrainContext): Promise<string | undefined> {
  const budget = context.state.budget ?? context.agent.definition.budget
  if (!budget) return undefined
  const { environment, head, state } = context
  const { tokens, costUsd, startedAt } = state.usage
  const durationMs = startedAt === 0 ? 0 : environment.clock.now() - startedAt
  const own = budgetReason(budget, { tokens, costUsd, durationMs })
  if (own !== undefined || !budget.tree) return own
  return budgetReason(budget.tree, {
    ...(await environment.store.treeUsage(head.rootId)),
    durationMs,
  })
}
