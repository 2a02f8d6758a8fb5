import { askedModels, relationsOf, sidesOf } from './related-definitions.ts'
import { at, report } from './readers.ts'
import type { LoadedAgent } from './resolve-agent.ts'
import type { ResolvedAgent, ResolvedModel, ResolvedSide, ResolvedTool } from '../resolved.ts'
import type { Budget } from '../agent-definition.ts'

/**
 * Reports budgets in US dollars that could not be enforced, because a model has no price. A budget of a tree
 * counts subagents too, so their models need prices as well.
 */
export function checkBudgets(agents: readonly LoadedAgent[]): void {
  const prices = new Map(
    agents.flatMap(({ resolved }) => (resolved ? [[resolved.name, resolved]] : [])),
  )
  for (const { entry, resolved } of agents) {
    const { budget } = entry.read
    if (!resolved || !budget) continue
    const place = at(entry.place, 'budget')
    const [own, tree] = unpricedFor(budget, resolved, prices)
    if (own.length > 0) report(at(place, 'maxCostUsd'), noPrice(own))
    if (tree.length > 0) report(at(at(place, 'tree'), 'maxCostUsd'), noPrice(tree))
  }
}

/** Says which models have no price, and how to give one. */
export function noPrice(models: readonly string[]): string {
  const names = models.join(', ')
  const have = models.length === 1 ? 'has' : 'have'
  return `cannot hold, because ${names} ${have} no price; give inputPrice and outputPrice to defineModel, or the option prices`
}

/**
 * Returns the models without a price that a budget in US dollars would have to count: `own` for a limit of the
 * agent's own thread, `tree` for a limit that includes its descendants.
 */
export function unpricedFor(
  budget: { readonly maxCostUsd?: unknown; readonly tree?: unknown },
  agent: ResolvedAgent,
  agents: ReadonlyMap<string, ResolvedAgent>,
): readonly [own: readonly string[], tree: readonly string[]] {
  const tree = budget.tree as Budget['tree'] // checked where the budget was read
  const hasCost = budget.maxCostUsd !== undefined
  return [
    hasCost ? unpriced([agent]) : [],
    tree?.maxCostUsd === undefined ? [] : unpriced(reachedFrom(agent, agents)),
  ]
}

/** Returns the models of these agents whose cost cannot be known. */
export function unpriced(agents: Iterable<ResolvedAgent>): readonly string[] {
  const names = new Set<string>()
  for (const agent of agents)
    for (const side of sidesOf(agent))
      for (const model of askedModels(side.prompt))
        if (!model.price && !tellsCost(side, model))
          names.add(`${model.model.provider.name}/${model.model.modelId}`)
  return [...names]
}

/** Providers that report with each answer what it has cost. */
const TELL_COST: ReadonlySet<string> = new Set(['openrouter'])

/** Whether the cost of each answer is reported, although the price is not known beforehand. */
export function tellsCost({ agent }: ResolvedSide, { model }: ResolvedModel): boolean {
  const hasMiddleware = agent?.llmMiddleware?.some(({ name }) => name === 'cost') === true
  return hasMiddleware || TELL_COST.has(model.provider.name)
}

/** Returns the agent, the agents that it hands over to, and all agents that may become its descendants. */
function reachedFrom(
  agent: ResolvedAgent,
  agents: ReadonlyMap<string, ResolvedAgent>,
): ReadonlySet<ResolvedAgent> {
  const names = new Set([agent])
  for (const each of names)
    for (const { prompt } of sidesOf(each))
      for (const name of agentsIn(prompt.tools)) {
        const definition = agents.get(name)
        if (definition) names.add(definition)
      }
  return names
}

function agentsIn(tools: readonly ResolvedTool[]): readonly string[] {
  const handoffs = tools.flatMap((tool) => (tool.kind === 'handoff' ? [tool.agent] : []))
  return [...handoffs, ...relationsOf(tools).map(({ agent }) => agent)]
}
