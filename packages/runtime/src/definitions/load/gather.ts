import { isPlainObject } from '@skein/base'
import { asToolDefinition } from '../define-tool.ts'
import { sourceOf } from '../define.ts'
import type { Problem } from '../resolved.ts'
import { at, kindOf, type Place, type Reader, report, suggest, makerOf } from './readers.ts'
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
import { readAgent, type ReadAgent } from './read-agent.ts'
import { readPrompt, type ReadPrompt } from './read-prompt.ts'

/** A definition that was found: the object itself, and its valid fields. */
export interface GatheredDefinition<Read> {
  readonly definition: object
  readonly read: Read
  /** Undefined if the definition has no valid name. */
  readonly name: string | undefined
  readonly place: Place
}

/** All definitions of one kind. */
export interface Shelf<Read> {
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

/** All definitions that were found, by kind. */
export type Catalog = { readonly [Kind in keyof Reads]: Shelf<Reads[Kind]> }
type DefinitionKind = keyof Reads

/**
 * A value to be read. `from` is the place where it was found; it names a definition without a name in problems.
 */
export interface Found {
  readonly kind: DefinitionKind
  readonly value: unknown
  readonly from: string
}

/** Reads the given definitions, and all definitions that they refer to as objects and not by name. */
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
  const made: MadeSubagent[] = []
  for (let next = pending.shift(); next; next = pending.shift()) {
    const { kind, value: given, from } = next
    const value = kind === 'tool' ? (asToolDefinition(given) ?? given) : given
    const place: Place = { subject: from, file: files.get(given), field: '', problems }
    if (!isPlainObject(value)) {
      const article = /^[aeiou]/.test(kind) ? 'an' : 'a'
      report(
        place,
        `must be ${article} ${kind}, not ${kindOf(value)}; ${makerOf(kind)}({ … }) makes one`,
      )
      continue
    }
    pending.push(...take({ catalog, made }, { kind, value }, place))
  }
  for (const { entry, source } of made) {
    const other = catalog.agent.byName.get(entry.name ?? '')
    add(catalog.agent, other?.definition === source ? asOwnAgent(entry) : entry, 'agent')
  }
  return catalog
}

/** A subagent that `asSubagent` made of another agent. */
interface MadeSubagent {
  readonly entry: GatheredDefinition<ReadAgent>
  readonly source: object
}

/** Returns the entry of a subagent under a name of its own. Models still know its tool by the name of the definition. */
function asOwnAgent(entry: GatheredDefinition<ReadAgent>): GatheredDefinition<ReadAgent> {
  // Problems keep the name that the user wrote.
  return { ...entry, name: `${entry.name}_subagent` }
}

/** Adds an entry to the list of its kind. Reports a name that belongs to another definition. */
function add<Read>(
  shelf: Shelf<Read>,
  entry: GatheredDefinition<Read>,
  kind: DefinitionKind,
): void {
  const { name, place, definition } = entry
  shelf.all.push(entry)
  shelf.byObject.set(definition, entry)
  if (name === undefined) return
  const other = shelf.byName.get(name)
  if (!other) {
    shelf.byName.set(name, entry)
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

function shelf<Read>(): Shelf<Read> {
  return { all: [], byName: new Map(), byObject: new Map() }
}

/** Adds one definition to the list of its kind, and returns the objects that it refers to. */
function take<Kind extends DefinitionKind>(
  { catalog, made }: { readonly catalog: Catalog; readonly made: MadeSubagent[] },
  { kind, value }: { readonly kind: Kind; readonly value: Record<string, unknown> },
  found: Place,
): Found[] {
  const shelf: Shelf<Reads[Kind]> = catalog[kind]
  if (shelf.byObject.has(value)) return []
  // Endpoints have no name; they are identified by method and path.
  const words = kind === 'endpoint' ? [value['method'], value['path']] : [value[nameField(kind)]]
  const isNamed = words.every((word) => typeof word === 'string')
  const label = isNamed ? words.join(' ') : undefined
  const place = {
    ...found,
    subject: label === undefined ? `${kind} in ${found.subject}` : `${kind} "${label}"`,
  }
  const read = readers[kind](value, place)
  if (read === undefined) return []
  const name = label?.trim() === '' ? undefined : label
  const entry: GatheredDefinition<Reads[Kind]> = { definition: value, read, name, place }
  shelf.byObject.set(value, entry)
  const source = sourceOf(value)
  // Whether the agent of which it was made has the same name is known when all definitions are read.
  if (source) made.push({ entry: entry as GatheredDefinition<ReadAgent>, source })
  else add(shelf, entry, kind)
  return (references[kind]?.(read) ?? []).map((target) => ({ ...target, from: place.subject }))
}

function nameField(kind: DefinitionKind): string {
  return kind === 'hook' ? 'id' : kind === 'endpoint' ? 'path' : 'name'
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

/** Functions that return the definitions to which a definition refers as objects and not by name. */
const references: { readonly [Kind in DefinitionKind]?: (read: Reads[Kind]) => Target[] } = {
  agent({ sideA, sideB, hooks = [] }) {
    const sides = [sideA, sideB].filter((side) => side !== undefined)
    return [
      ...sides.flatMap((side) => [
        ...objects('prompt', [side.prompt]),
        ...objects('agent', side.subagents?.map((one) => one?.agent) ?? []),
        ...objects('tool', [
          side.stopTool,
          side.sessionStop?.name,
          side.sessionFail?.name,
          side.sessionStatus?.name,
        ]),
      ]),
      ...objects('hook', hooks),
    ]
  },
  prompt({ model, prompt = [], tools = [], hooks = [] }) {
    const includes =
      typeof prompt === 'string'
        ? []
        : prompt.flatMap((part) => (part?.type === 'include' ? [part.prompt] : []))
    const callables = tools.flatMap((tool) => {
      if (tool?.form === 'tool') return [tool.tool]
      if (tool?.form === 'agent') return [tool.agent]
      if (tool?.form === 'prompt') return [tool.prompt]
      return tool?.form === 'config' ? [tool.name] : []
    })
    return [
      ...models([model]),
      ...objects('prompt', includes),
      ...objects('hook', hooks),
      ...callables.flatMap((value) => {
        const kind = isKind(value, 'tool') ? 'tool' : isKind(value, 'prompt') ? 'prompt' : 'agent'
        return objects(kind, [value])
      }),
    ]
  },
  tool: ({ uses = [] }) => objects('tool', uses),
  model: ({ fallbacks = [] }) => models(fallbacks),
}

/** Selects the models that are definitions; models of vendors are not checked here. */
function models(references: readonly unknown[]): Target[] {
  return objects('model', references).filter(({ value }) => isKind(value, 'model'))
}

function objects(kind: DefinitionKind, references: readonly unknown[]): Target[] {
  return references
    .filter((value) => typeof value === 'object' && value !== null)
    .map((value) => ({ kind, value }))
}

/** Finds the definition of a reference. If there is none, reports a problem and returns undefined. */
export function find<Read>(
  shelf: Shelf<Read>,
  reference: string | object | undefined,
  { kind, place }: { readonly kind: string; readonly place: Place },
): GatheredDefinition<Read> | undefined {
  if (reference === undefined) return undefined
  if (typeof reference === 'object') return shelf.byObject.get(reference)
  const entry = shelf.byName.get(reference)
  if (entry) return entry
  return report(place, unknownName(kind, reference, shelf.byName.keys()))
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

/** A file that should export one definition. */
export interface DefinitionFile {
  readonly kind: keyof Reads
  readonly path: string
  /** The path relative to the searched folder, with forward slashes. */
  readonly file: string
  /** The path relative to the folder of its kind, without the extension: `orders/[id].get`. */
  readonly stem: string
}

export function toProblem(file: string, message: string): Problem {
  return { subject: file, field: '', message, file }
}

/** Checks that tools and scheduled effects have the names of their files, and converts handlers to endpoints. */
export function named(value: unknown, file: DefinitionFile, problems: Problem[]): unknown {
  if (file.kind === 'endpoint') return toEndpoint(value, file, problems)
  if (file.kind !== 'tool' && file.kind !== 'effect') return value
  const expected = file.stem.split('/').at(-1)
  const name = isPlainObject(value) ? value['name'] : undefined
  if (typeof name === 'string' && name !== expected) {
    const subject = `${file.kind} "${name}"`
    const message = `must be "${expected}", like its file`
    problems.push({ subject, field: 'name', message, file: file.file })
  }
  return value
}

const route = /^(?<path>.*?)\.(?<method>get|post|put|patch|delete)$/

function toEndpoint(value: unknown, { stem, file }: DefinitionFile, problems: Problem[]): unknown {
  const { path = '', method = '' } = route.exec(stem)?.groups ?? {}
  const expected = { path: path.replace(/(^|\/)index$/, ''), method: method.toUpperCase() }
  if (method === '') {
    problems.push(toProblem(file, 'must name its method, e.g. orders.get.ts'))
  }
  if (method === '') return undefined
  if (typeof value === 'function') {
    return Object.freeze({ kind: 'endpoint', ...expected, execute: value })
  }
  if (!isPlainObject(value)) return value
  for (const field of ['path', 'method'] as const) {
    const given = value[field]
    if (typeof given !== 'string' || given === expected[field]) continue
    const message = `must be "${expected[field]}", like its file`
    problems.push({ subject: file, field, message, file })
  }
  return value
}
