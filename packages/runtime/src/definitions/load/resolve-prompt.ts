import type { ModelReference } from '@skein/ai'
import { findDefinition, type GatheredDefinition } from './definition-index.ts'
import type { Catalog } from './gather.ts'
import { mergeVariables } from './required-variables.ts'
import { isModelReference, type ReadModel } from './read-definition.ts'
import type { ReadPrompt } from './read-prompt.ts'
import { at, report, type Place } from './readers.ts'
import { resolveTools, withUses, type LoadedTool } from './resolve-tools.ts'
import type { ResolvedModel, ResolvedPrompt, Subprompt } from '../resolved.ts'
import type { ModelDefinition } from '../model-definition.ts'
import type { PromptDefinition, VariableDefinition } from '../prompt-definition.ts'
import type { Ref } from '../agent-definition.ts'

/**
 * A resolved prompt, with the places of its parts and tools, at which problems that are found later are
 * reported.
 */
export interface LoadedPrompt {
  readonly entry: GatheredDefinition<ReadPrompt>
  readonly unfolded: Unfolded
  readonly tools: readonly LoadedTool[]
  readonly resolved: ResolvedPrompt
}

/** Resolves every prompt once. */
export function resolvePrompts(
  catalog: Catalog,
): ReadonlyMap<GatheredDefinition<ReadPrompt>, LoadedPrompt> {
  const unfold = partsResolver(catalog)
  const prompts = new Map<GatheredDefinition<ReadPrompt>, LoadedPrompt>()
  for (const entry of catalog.prompt.all) {
    const unfolded = unfold(entry)
    const tools = resolveTools(entry, catalog)
    const own = tools.flatMap((tool) => tool.entry ?? [])
    const asked = tools.flatMap(({ subprompt }) =>
      subprompt ? [...unfold(subprompt).prompts] : [],
    )
    const declared = [...unfolded.prompts, ...asked, ...withUses(own, catalog)].flatMap(
      ({ read }) => read.variables ?? [],
    )
    const prompt: ResolvedPrompt = {
      definition: entry.definition as PromptDefinition, // its fields were already checked
      name: entry.name ?? '',
      parts: unfolded.parts.map(({ part }) => part),
      models: resolveModels(entry, catalog),
      tools: tools.map((tool) => tool.resolved),
      variables: mergeVariables(declared.filter((item): item is VariableDefinition => !!item)),
    }
    prompts.set(entry, { entry, unfolded, tools, resolved: prompt })
  }
  for (const { tools } of prompts.values())
    for (const { resolved, subprompt } of tools) {
      if (resolved.kind !== 'prompt' || !subprompt) continue
      const open: { -readonly [Key in keyof Subprompt]: Subprompt[Key] } = resolved
      open.prompt = prompts.get(subprompt)!.resolved // every prompt of the catalog is in the map
    }
  return prompts
}

type ModelRef = Ref<ModelDefinition> | ModelReference | undefined

function resolveModels(
  { read, place }: GatheredDefinition<ReadPrompt>,
  catalog: Catalog,
): ResolvedModel[] {
  findDefinition(catalog.model, nameIn(read.model), { kind: 'model', place: at(place, 'model') })
  const models = new Map<object, ResolvedModel>()
  // The list grows while the loop runs: fallbacks of fallbacks come last, and `models` prevents endless
  // cycles.
  const pending: ModelRef[] = [read.model]
  for (const reference of pending) {
    const entry =
      typeof reference === 'string'
        ? catalog.model.byName.get(reference)
        : reference && catalog.model.byObject.get(reference)
    const key = entry ?? reference
    if (typeof key !== 'object' || models.has(key)) continue
    if (isModelReference(reference)) {
      const { modelId: name } = reference
      models.set(key, {
        name,
        model: reference,
        definition: undefined,
        price: undefined,
        inputs: {},
      })
    } else if (entry?.read.model) {
      const definition = entry.definition as ModelDefinition // its fields were already checked
      const { name = '', read: found } = entry
      models.set(key, { name, model: found.model!, definition, price: undefined, inputs: {} })
      pending.push(...(entry.read.fallbacks ?? []))
    }
  }
  return [...models.values()]
}

function nameIn(reference: unknown): string | undefined {
  return typeof reference === 'string' ? reference : undefined
}

/** Reports fallbacks whose names are unknown. */
export function checkFallbacks(
  { read, place }: GatheredDefinition<ReadModel>,
  { model: definitions }: Catalog,
): void {
  for (const [index, reference] of (read.fallbacks ?? []).entries()) {
    findDefinition(definitions, nameIn(reference), {
      kind: 'model',
      place: at(at(place, 'fallbacks'), index),
    })
  }
}

type Part = ResolvedPrompt['parts'][number]

/** The parts of a prompt, with every include replaced by its contents. */
interface Unfolded {
  readonly parts: readonly { readonly part: Part; readonly place: Place }[]
  /** The prompt itself and all prompts that it includes. */
  readonly prompts: ReadonlySet<GatheredDefinition<ReadPrompt>>
}

/** The maximum number of parts; more are a mistake, such as includes that double at every level. */
const MAX_PARTS = 10_000

/**
 * Creates a function that replaces includes with their contents. Each prompt is resolved once, so that each
 * problem is reported once.
 */
function partsResolver(catalog: Catalog): (entry: GatheredDefinition<ReadPrompt>) => Unfolded {
  const results = new Map<GatheredDefinition<ReadPrompt>, Unfolded>()
  const path: GatheredDefinition<ReadPrompt>[] = []

  function unfold(entry: GatheredDefinition<ReadPrompt>): Unfolded {
    const earlier = results.get(entry)
    if (earlier) return earlier
    path.push(entry)
    const parts: { part: Part; place: Place }[] = []
    const prompts = new Set([entry])
    const { prompt = [] } = entry.read
    const place = at(entry.place, 'prompt')
    const list = typeof prompt === 'string' ? [{ type: 'text' as const, content: prompt }] : prompt
    for (const [index, part] of list.entries()) {
      if (part === undefined) continue
      const here = typeof prompt === 'string' ? place : at(place, index)
      if (part.type !== 'include') {
        parts.push({ part, place: here })
        continue
      }
      const inclusion = include(part.prompt, at(here, 'prompt'))
      if (!inclusion) continue
      for (const other of inclusion.prompts) prompts.add(other)
      if (parts.length + inclusion.parts.length > MAX_PARTS) {
        report(here, `makes a prompt of more than ${MAX_PARTS} parts`)
        continue
      }
      parts.push(...inclusion.parts)
    }
    path.pop()
    const result = { parts, prompts }
    results.set(entry, result)
    return result
  }

  function include(reference: string | object | undefined, place: Place): Unfolded | undefined {
    const target = findDefinition(catalog.prompt, reference, { kind: 'prompt', place })
    if (!target) return undefined
    const start = path.indexOf(target)
    if (start < 0) return unfold(target)
    const names = [...path.slice(start), target].map(({ name }) => name ?? '?')
    return report(place, `prompts include each other: ${names.join(' → ')}`)
  }

  return unfold
}
