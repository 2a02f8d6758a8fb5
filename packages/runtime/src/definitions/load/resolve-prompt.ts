import type { Agent } from '@skein/agents'
import type { ModelReference, ToolSchema } from '@skein/ai'
import { isStandardSchema } from '@skein/base'
import { toolFrom } from '../tool-from.ts'
import type { ResolvedModel, ResolvedPrompt } from '../resolved.ts'
import type {
  ModelDefinition,
  PromptDefinition,
  Ref,
  ToolDefinition,
  VariableDefinition,
} from '../types.ts'
import { find, type Catalog, type Entry } from './gather.ts'
import { at } from './place.ts'
import { isKind, isModelReference, type ReadModel } from './read-definition.ts'
import type { ReadPrompt } from './read-prompt.ts'
import { partsResolver, type Unfolded } from './resolve-parts.ts'
import { resolveTools, withUses, type LoadedTool } from './resolve-tools.ts'
import { mergeVariables } from './variables.ts'

/** A prompt with everything found, and where its problems would be. */
export interface LoadedPrompt {
  readonly entry: Entry<ReadPrompt>
  readonly unfolded: Unfolded
  readonly tools: readonly LoadedTool[]
  readonly resolved: ResolvedPrompt
}

/** Resolves every prompt once. */
export function resolvePrompts(catalog: Catalog): ReadonlyMap<Entry<ReadPrompt>, LoadedPrompt> {
  const unfold = partsResolver(catalog)
  return new Map(
    catalog.prompt.all.map((entry) => [entry, resolvePrompt(entry, unfold(entry), catalog)]),
  )
}

function resolvePrompt(
  entry: Entry<ReadPrompt>,
  unfolded: Unfolded,
  catalog: Catalog,
): LoadedPrompt {
  const tools = resolveTools(entry, catalog)
  const used = withUses(
    tools.flatMap((tool) => tool.entry ?? []),
    catalog,
  )
  const declared = [...unfolded.prompts, ...used].flatMap(({ read }) => read.variables ?? [])
  return {
    entry,
    unfolded,
    tools,
    resolved: {
      definition: entry.definition as PromptDefinition, // its fields were read
      name: entry.name ?? '',
      parts: unfolded.parts.map(({ part }) => part),
      models: resolveModels(entry, catalog),
      tools: tools.map((tool) => tool.resolved),
      variables: mergeVariables(declared.filter((item): item is VariableDefinition => !!item)),
    },
  }
}

/**
 * What an `agent()` is told and may use, as a prompt: everything that looks at the prompt of a side then
 * works for it too. A tool without a risk tier counts as a low-risk write.
 */
export function promptOfAgent(agent: Agent, name: string): ResolvedPrompt {
  const { model, system = '', config, params, structure, tools } = agent
  const { modelId } = model
  return {
    definition: {
      kind: 'prompt',
      name,
      prompt: system,
      model,
      providerOptions: params,
      output: isStandardSchema(structure) ? (structure as ToolSchema<unknown>) : undefined,
    },
    name,
    parts: [{ type: 'text', content: system }],
    models: [{ name: modelId, model, definition: { kind: 'model', name: modelId, model, config } }],
    tools: tools.map((tool) => ({
      kind: 'tool',
      name: tool.name,
      tool: isKind(tool, 'tool')
        ? (tool as unknown as ToolDefinition) // made by `defineTool` or `toolFrom`
        : toolFrom(tool, { risk: tool.risk ?? 'write_low_risk' }),
      config: undefined,
    })),
    variables: [],
  }
}

type ModelRef = Ref<ModelDefinition> | ModelReference | undefined

function resolveModels({ read, place }: Entry<ReadPrompt>, catalog: Catalog): ResolvedModel[] {
  find(catalog.model, nameIn(read.model), { kind: 'model', place: at(place, 'model') })
  const models = new Map<object, ResolvedModel>()
  // A list that grows while it is walked: fallbacks of fallbacks come last, and circles end.
  const pending: ModelRef[] = [read.model]
  for (const reference of pending) {
    const entry = entryOf(reference, catalog)
    const key = entry ?? reference
    if (typeof key !== 'object' || models.has(key)) continue
    const model = toModel(reference, entry)
    if (!model) continue
    models.set(key, model)
    pending.push(...(entry?.read.fallbacks ?? []))
  }
  return [...models.values()]
}

function entryOf(reference: ModelRef, { model }: Catalog): Entry<ReadModel> | undefined {
  if (typeof reference === 'string') return model.byName.get(reference)
  return reference && model.byObject.get(reference)
}

function toModel(
  reference: ModelRef,
  entry: Entry<ReadModel> | undefined,
): ResolvedModel | undefined {
  if (isModelReference(reference)) {
    return { name: reference.modelId, model: reference, definition: undefined }
  }
  if (!entry?.read.model) return undefined
  const definition = entry.definition as ModelDefinition // its fields were read
  return { name: entry.name ?? '', model: entry.read.model, definition }
}

function nameIn(reference: unknown): string | undefined {
  return typeof reference === 'string' ? reference : undefined
}

/** Reports fallbacks that no model has the name of. */
export function checkFallbacks({ read, place }: Entry<ReadModel>, { model: shelf }: Catalog): void {
  for (const [index, reference] of (read.fallbacks ?? []).entries()) {
    find(shelf, nameIn(reference), { kind: 'model', place: at(at(place, 'fallbacks'), index) })
  }
}
