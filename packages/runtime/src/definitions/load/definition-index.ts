import type { ReadAgent } from './read-agent.ts'
import type { ReadEffect, ReadEndpoint, ReadHook, ReadModel, ReadTool } from './read-definition.ts'
import type { ReadPrompt } from './read-prompt.ts'
import { at, report, suggest, type Place } from './readers.ts'
import { sourceOf } from '../agent-brand.ts'

/** A definition that was found: the object itself, and its valid fields. */
export interface GatheredDefinition<Read> {
  readonly definition: object
  readonly read: Read
  /** Undefined if the definition has no valid name. */
  readonly name: string | undefined
  readonly place: Place
}

/** All definitions of one kind. */
export interface DefinitionIndex<Read> {
  readonly all: GatheredDefinition<Read>[]
  readonly byName: Map<string, GatheredDefinition<Read>>
  readonly byObject: Map<object, GatheredDefinition<Read>>
}

/** What reading a definition gives, by kind of definition: its valid fields. */
export interface Reads {
  readonly agent: ReadAgent
  readonly prompt: ReadPrompt
  readonly model: ReadModel
  readonly tool: ReadTool
  readonly hook: ReadHook
  readonly effect: ReadEffect
  readonly endpoint: ReadEndpoint
}

/** The name of a kind of definition. */
export type DefinitionKind = keyof Reads

/** Adds an entry to the list of its kind. Reports a name that belongs to another definition. */
export function addDefinition<Read>(
  index: DefinitionIndex<Read>,
  entry: GatheredDefinition<Read>,
  kind: DefinitionKind,
): void {
  const { name, place, definition } = entry
  index.all.push(entry)
  index.byObject.set(definition, entry)
  if (name === undefined) return
  const other = index.byName.get(name)
  if (!other) {
    index.byName.set(name, entry)
    return
  }
  const files = [other.place.file, place.file].filter((file) => file !== undefined)
  const where = files.length > 0 ? ` (${files.join(' and ')})` : ''
  const hint =
    kind === 'agent' && sourceOf(definition)
      ? '; give this one a name of its own: asSubagent(agent, { name })'
      : ''
  report(at(place, nameField(kind)), `two different ${kind}s are called "${name}"${where}${hint}`)
}

/** Creates an index without definitions. */
export function emptyIndex<Read>(): DefinitionIndex<Read> {
  return { all: [], byName: new Map(), byObject: new Map() }
}

/** The field that names a definition of this kind. */
export function nameField(kind: DefinitionKind): string {
  return kind === 'hook' ? 'id' : kind === 'endpoint' ? 'path' : 'name'
}

/** Finds the definition of a reference. If there is none, reports a problem and returns undefined. */
export function findDefinition<Read>(
  index: DefinitionIndex<Read>,
  reference: string | object | undefined,
  { kind, place }: { readonly kind: string; readonly place: Place },
): GatheredDefinition<Read> | undefined {
  if (reference === undefined) return undefined
  if (typeof reference === 'object') return index.byObject.get(reference)
  const entry = index.byName.get(reference)
  if (entry) return entry
  return report(place, unknownName(kind, reference, index.byName.keys()))
}

/** Returns the text of the problem that a name is unknown, with a suggestion. */
export function unknownName(kind: string, name: string, known: Iterable<string>): string {
  const suggestion = suggest(name, known)
  const hint =
    kind === 'model' && suggestion === ''
      ? '; give the model itself, such as openai("gpt-5") of @skein/ai/openai, or define it in models/'
      : suggestion
  return `there is no ${kind} "${name}"${hint}`
}
