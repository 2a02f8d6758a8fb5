import { isPlainObject } from '@skein/base'
import { asToolDefinition } from '../define-tool.ts'
import type { Problem } from '../resolved.ts'
import { at, kindOf, type Place, type Reader, report, suggest } from './readers.ts'
import {
  isKind,
  readEffect,
  type ReadEffect,
  readEndpoint,
  type ReadEndpoint,
  readHook,
  type ReadHook,
  readModel,
  type ReadModel,
  readTool,
  type ReadTool,
} from './read-definition.ts'
import { readAgent, type ReadAgent, type ReadSide } from './read-agent.ts'
import { readPrompt, type ReadPrompt } from './read-prompt.ts'

/** A definition that was found: as its author wrote it, and what of it is right. */
export interface Entry<Read> {
  readonly definition: object
  readonly read: Read
  /** Undefined when it has none that is right. */
  readonly name: string | undefined
  readonly place: Place
}

/** All definitions of one kind. */
export interface Shelf<Read> {
  readonly all: Entry<Read>[]
  readonly byName: Map<string, Entry<Read>>
  readonly byObject: Map<object, Entry<Read>>
}

/** What is read of each kind. */
export interface Reads {
  readonly agent: ReadAgent
  readonly prompt: ReadPrompt
  readonly model: ReadModel
  readonly tool: ReadTool
  readonly hook: ReadHook
  readonly effect: ReadEffect
  readonly endpoint: ReadEndpoint
}

export type Catalog = { readonly [Kind in keyof Reads]: Shelf<Reads[Kind]> }
type DefinitionKind = keyof Reads

/** Something to be read: where it was found is its name until it has told its own. */
export interface Found {
  readonly kind: DefinitionKind
  readonly value: unknown
  readonly from: string
}

/** Reads every definition that is given, and all that they reach. */
export function gather(
  found: readonly Found[],
  files: ReadonlyMap<unknown, string>,
  problems: Problem[],
): Catalog {
  const catalog: Catalog = {
    agent: shelf(),
    prompt: shelf(),
    model: shelf(),
    tool: shelf(),
    hook: shelf(),
    effect: shelf(),
    endpoint: shelf(),
  }
  const pending = [...found]
  for (let next = pending.shift(); next; next = pending.shift()) {
    const { kind, value: given, from } = next
    const value = kind === 'tool' ? (asToolDefinition(given) ?? given) : given
    const place: Place = { subject: from, file: files.get(given), field: '', problems }
    if (!isPlainObject(value)) {
      report(place, `must be ${article(kind)}, not ${kindOf(value)}`)
      continue
    }
    pending.push(...take(catalog, { kind, value }, place))
  }
  return catalog
}

function shelf<Read>(): Shelf<Read> {
  return { all: [], byName: new Map(), byObject: new Map() }
}

/** Puts one definition on its shelf and answers the objects that it refers to. */
function take<Kind extends DefinitionKind>(
  catalog: Catalog,
  { kind, value }: { readonly kind: Kind; readonly value: Record<string, unknown> },
  found: Place,
): Found[] {
  const shelf: Shelf<Reads[Kind]> = catalog[kind]
  if (shelf.byObject.has(value)) return []
  const label = labelOf(kind, value)
  const place = {
    ...found,
    subject: label === undefined ? `${kind} in ${found.subject}` : `${kind} "${label}"`,
  }
  const read = readers[kind](value, place)
  if (read === undefined) return []
  const name = label?.trim() === '' ? undefined : label
  const entry: Entry<Reads[Kind]> = { definition: value, read, name, place }
  shelf.all.push(entry)
  shelf.byObject.set(value, entry)
  putName(shelf, entry, kind)
  return [...objectsIn(kind, read)].map((target) => ({ ...target, from: place.subject }))
}

/** What a definition is called, if that is a string. */
function labelOf(kind: DefinitionKind, value: Record<string, unknown>): string | undefined {
  if (kind === 'endpoint') {
    const [method, path] = [value['method'], value['path']]
    return typeof method === 'string' && typeof path === 'string' ? `${method} ${path}` : undefined
  }
  const name = value[nameField(kind)]
  return typeof name === 'string' ? name : undefined
}

function nameField(kind: DefinitionKind): string {
  return kind === 'hook' ? 'id' : kind === 'endpoint' ? 'path' : 'name'
}

function putName<Read>(shelf: Shelf<Read>, entry: Entry<Read>, kind: DefinitionKind): void {
  if (entry.name === undefined) return
  const other = shelf.byName.get(entry.name)
  if (!other) {
    shelf.byName.set(entry.name, entry)
    return
  }
  const files = [other.place.file, entry.place.file].filter((file) => file !== undefined)
  const where = files.length > 0 ? ` (${files.join(' and ')})` : ''
  report(
    at(entry.place, nameField(kind)),
    `two different ${kind}s are called "${entry.name}"${where}`,
  )
}

const readers: { readonly [Kind in DefinitionKind]: Reader<Reads[Kind]> } = {
  agent: readAgent,
  prompt: readPrompt,
  model: readModel,
  tool: readTool,
  hook: readHook,
  effect: readEffect,
  endpoint: readEndpoint,
}

type Target = Omit<Found, 'from'>

/** The definitions that a definition refers to by object. */
function objectsIn<Kind extends DefinitionKind>(kind: Kind, read: Reads[Kind]): Target[] {
  // The kind says which of the shapes it is; the compiler does not tie both together.
  if (kind === 'agent') return inAgent(read as ReadAgent)
  if (kind === 'prompt') return inPrompt(read as ReadPrompt)
  if (kind === 'tool') return objects('tool', (read as ReadTool).uses ?? [])
  if (kind === 'model') return models((read as ReadModel).fallbacks ?? [])
  return []
}

function inAgent({ sideA, sideB, hooks = [] }: ReadAgent): Target[] {
  const sides = [sideA, sideB].filter((side): side is ReadSide => side !== undefined)
  return [
    ...sides.flatMap((side) => [
      ...objects('prompt', [side.prompt]),
      ...objects('tool', [
        side.stopTool,
        side.sessionStop?.name,
        side.sessionFail?.name,
        side.sessionStatus?.name,
      ]),
    ]),
    ...objects('hook', hooks),
  ]
}

function inPrompt({ model, prompt = [], tools = [], hooks = [] }: ReadPrompt): Target[] {
  const includes =
    typeof prompt === 'string'
      ? []
      : prompt.flatMap((part) => (part?.type === 'include' ? [part.prompt] : []))
  const callables = tools.flatMap((tool) => {
    if (tool?.form === 'tool') return [tool.tool]
    if (tool?.form === 'agent') return [tool.agent]
    return tool?.form === 'config' ? [tool.name] : []
  })
  return [
    ...models([model]),
    ...objects('prompt', includes),
    ...objects('hook', hooks),
    ...callables.flatMap((value) => objects(isKind(value, 'tool') ? 'tool' : 'agent', [value])),
  ]
}

/** Models that are definitions; those of a vendor are not ours to judge. */
function models(references: readonly unknown[]): Target[] {
  return objects('model', references).filter(({ value }) => isKind(value, 'model'))
}

function objects(kind: DefinitionKind, references: readonly unknown[]): Target[] {
  return references
    .filter((value) => typeof value === 'object' && value !== null)
    .map((value) => ({ kind, value }))
}

function article(kind: DefinitionKind): string {
  return /^[aeiou]/.test(kind) ? `an ${kind}` : `a ${kind}`
}

/** The definition that a reference means; undefined, and reported, when there is none. */
export function find<Read>(
  shelf: Shelf<Read>,
  reference: string | object | undefined,
  { kind, place }: { readonly kind: string; readonly place: Place },
): Entry<Read> | undefined {
  if (reference === undefined) return undefined
  if (typeof reference === 'object') return shelf.byObject.get(reference)
  const entry = shelf.byName.get(reference)
  if (entry) return entry
  return report(place, unknownName(kind, reference, shelf.byName.keys()))
}

export function unknownName(kind: string, name: string, known: Iterable<string>): string {
  return `there is no ${kind} "${name}"${suggest(name, known)}`
}
