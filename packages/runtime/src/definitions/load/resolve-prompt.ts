import type { ModelReference } from '@skein/ai'
import type { ResolvedModel, ResolvedPrompt } from '../resolved.ts'
import type { ModelDefinition, PromptDefinition, Ref, VariableDefinition } from '../types.ts'
import { type Catalog, type Entry, find } from './gather.ts'
import { at, type Place, report } from './readers.ts'
import { isModelReference, type ReadModel } from './read-definition.ts'
import type { ReadPrompt } from './read-prompt.ts'
import { type LoadedTool, resolveTools, withUses } from './resolve-tools.ts'
import { mergeVariables } from './graph.ts'

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

type Part = ResolvedPrompt['parts'][number]

/** What a prompt says, with everything it includes put in its place. */
interface Unfolded {
  readonly parts: readonly { readonly part: Part; readonly place: Place }[]
  /** The prompt itself and all that it includes. */
  readonly prompts: ReadonlySet<Entry<ReadPrompt>>
}

/** More parts than this are a mistake: includes that double with every level. */
const MAX_PARTS = 10_000

/** Unfolds prompts. Each is looked at once, so that each problem is told once. */
function partsResolver(catalog: Catalog): (entry: Entry<ReadPrompt>) => Unfolded {
  const known = new Map<Entry<ReadPrompt>, Unfolded>()
  const path: Entry<ReadPrompt>[] = []

  function unfold(entry: Entry<ReadPrompt>): Unfolded {
    const earlier = known.get(entry)
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
      const included = include(part.prompt, at(here, 'prompt'))
      if (!included) continue
      for (const other of included.prompts) prompts.add(other)
      if (parts.length + included.parts.length > MAX_PARTS) {
        report(here, `makes a prompt of more than ${MAX_PARTS} parts`)
        continue
      }
      parts.push(...included.parts)
    }
    path.pop()
    const unfolded = { parts, prompts }
    known.set(entry, unfolded)
    return unfolded
  }

  function include(reference: string | object | undefined, place: Place): Unfolded | undefined {
    const target = find(catalog.prompt, reference, { kind: 'prompt', place })
    if (!target) return undefined
    const start = path.indexOf(target)
    if (start < 0) return unfold(target)
    const names = [...path.slice(start), target].map(({ name }) => name ?? '?')
    return report(place, `prompts include each other: ${names.join(' → ')}`)
  }

  return unfold
}
