import type {
  Relation,
  ResolvedAgent,
  ResolvedModel,
  ResolvedPrompt,
  ResolvedTool,
} from '../resolved.ts'

/** Returns the agents to which an agent may hand over, and those that it may create as children. */
export function nextAgents(agent: ResolvedAgent | undefined): readonly string[] {
  const tools = agent ? sidesOf(agent).flatMap(({ prompt }) => prompt.tools) : []
  const handoffs = tools.flatMap((tool) => (tool.kind === 'handoff' ? [tool.agent] : []))
  return [...handoffs, ...relationsOf(tools).map(({ agent: child }) => child)]
}

/** Returns the sides of an agent's conversation that are not a person. */
export function sidesOf({ a, b }: ResolvedAgent): readonly ResolvedAgent['a'][] {
  return b ? [a, b] : [a]
}

/** Returns the models of a prompt and of the prompts that are its tools. */
export function askedModels({ models, tools }: ResolvedPrompt): readonly ResolvedModel[] {
  const promptModels = tools.flatMap((tool) => (tool.kind === 'prompt' ? tool.prompt.models : []))
  return [...models, ...promptModels]
}

/** Returns the subagents among the tools of a prompt. */
export function relationsOf(tools: readonly ResolvedTool[]): readonly Relation[] {
  return tools.flatMap((tool) => (tool.kind === 'subagent' ? [tool.relation] : []))
}
