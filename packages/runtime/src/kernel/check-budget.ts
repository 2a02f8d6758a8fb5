import { budgetReason as reasonOf } from '../services/budget.ts'
import type { DrainContext } from './drain-context.ts'

/** Why no further model call may be made, if so. */
export async function budgetReason(context: DrainContext): Promise<string | undefined> {
  const budget = context.state.budget ?? context.agent.definition.budget
  if (!budget) return undefined
  const { environment, head, state } = context
  const { tokens, costUsd, startedAt } = state.usage
  const durationMs = startedAt === 0 ? 0 : environment.clock.now() - startedAt
  const own = reasonOf(budget, { tokens, costUsd, durationMs })
  if (own !== undefined || !budget.tree) return own
  return reasonOf(budget.tree, { ...(await environment.store.treeUsage(head.rootId)), durationMs })
}
