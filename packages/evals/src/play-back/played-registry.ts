import type {
  EffectDefinition,
  HookDefinition,
  Registry,
  ResolvedAgent,
  ResolvedModel,
  ResolvedPrompt,
  ResolvedSide,
  ResolvedTool,
  ToolDefinition,
} from '@skein/runtime'
import { type Answering, answeredModel } from './recorded-model.ts'

/** What answers in place of the world. */
export interface PlayedAnswers {
  readonly model: Answering
  readonly tool: (tool: ToolDefinition) => NonNullable<ToolDefinition['run']>
  readonly effect: (effect: EffectDefinition) => EffectDefinition['run']
  readonly handler: NonNullable<ResolvedSide['handler']>
  readonly probe: (tool: ToolDefinition) => NonNullable<ToolDefinition['governance']['probe']>
}

/** Hooks that only change what a model is shown. The effects of all others are in the log. */
const SHAPING: ReadonlySet<string> = new Set([
  'filter_messages',
  'prefilter_llm_history',
  'after_system_message',
])

/** The same definitions with everything that reaches the world replaced. */
export function playedRegistry(registry: Registry, answers: PlayedAnswers): Registry {
  const models = new Map<ResolvedModel['model'], ResolvedModel['model']>()
  const tools = new Map<ToolDefinition, ToolDefinition>()
  const prompts = new Map<ResolvedPrompt, ResolvedPrompt>()

  const modelOf = (resolved: ResolvedModel): ResolvedModel => {
    const { model } = resolved
    const played = models.get(model) ?? answeredModel(model, answers.model)
    models.set(model, played)
    return { ...resolved, model: played }
  }
  const toolOf = (tool: ToolDefinition): ToolDefinition => {
    const before = tools.get(tool)
    if (before) return before
    const { governance } = tool
    const played: ToolDefinition = {
      ...tool,
      ...(tool.run && { run: answers.tool(tool) }),
      governance: { ...governance, ...(governance.probe && { probe: answers.probe(tool) }) },
    }
    // Members that are not enumerable, e.g. the parser of the arguments, belong to the tool as well.
    for (const name of Reflect.ownKeys(tool))
      if (!Object.hasOwn(played, name))
        Object.defineProperty(played, name, Object.getOwnPropertyDescriptor(tool, name)!)
    tools.set(tool, played)
    return played
  }
  const promptOf = (prompt: ResolvedPrompt): ResolvedPrompt => {
    const before = prompts.get(prompt)
    if (before) return before
    const played = {
      ...prompt,
      models: prompt.models.map(modelOf),
      tools: prompt.tools.map((tool): ResolvedTool => {
        if (tool.kind === 'tool') return { ...tool, tool: toolOf(tool.tool) }
        return tool.kind === 'prompt' ? { ...tool, prompt: promptOf(tool.prompt) } : tool
      }),
    }
    prompts.set(prompt, played)
    return played
  }
  const sideOf = (side: ResolvedSide): ResolvedSide => ({
    ...side,
    prompt: promptOf(side.prompt),
    handler: side.handler && answers.handler,
    hooks: side.hooks.map(hookOf),
  })
  const agents = new Map(
    [...registry.agents].map(([name, agent]): [string, ResolvedAgent] => [
      name,
      { ...agent, a: sideOf(agent.a), b: agent.b && sideOf(agent.b) },
    ]),
  )
  const effects = [...registry.effects].map(([name, effect]): [string, EffectDefinition] => [
    name,
    { ...effect, run: answers.effect(effect), ...(effect.probe && { probe: () => false }) },
  ])
  return {
    ...registry,
    previous: undefined,
    agents,
    tools: new Map([...registry.tools].map(([name, tool]) => [name, toolOf(tool)])),
    effects: new Map(effects),
    hooks: new Map([...registry.hooks].map(([id, hook]) => [id, hookOf(hook)])),
    agent: (name) => agents.get(name) ?? registry.agent(name),
  }
}

/** The hook itself if it only changes what a model is shown; else one that does nothing. */
function hookOf(hook: HookDefinition): HookDefinition {
  return SHAPING.has(hook.hook) ? hook : { ...hook, execute: () => undefined as never }
}
