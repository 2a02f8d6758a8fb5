import { isPlainObject } from '@skein/base'
import {
  addDefinition,
  nameField,
  emptyIndex,
  type DefinitionKind,
  type GatheredDefinition,
  type Reads,
  type DefinitionIndex,
} from './definition-index.ts'
import { readAgent, type ReadAgent } from './read-agent.ts'
import { readEffect, readEndpoint, readHook, readModel, readTool } from './read-definition.ts'
import { readPrompt } from './read-prompt.ts'
import { kindOf, makerOf, report, type Place, type Reader } from './readers.ts'
import { references, type ListedDefinition } from './references.ts'
import { asToolDefinition } from '../define-tool.ts'
import { sourceOf } from '../agent-brand.ts'
import type { Problem } from '../definition-error.ts'

/** All definitions that were found, by kind. */
export type Catalog = { readonly [Kind in keyof Reads]: DefinitionIndex<Reads[Kind]> }

/** Reads the given definitions, and all definitions that they refer to as objects and not by name. */
export function gather(
  found: readonly ListedDefinition[],
  files: ReadonlyMap<unknown, string>,
  problems: Problem[],
): Catalog {
  const catalog: Catalog = {
    agent: emptyIndex(),
    prompt: emptyIndex(),
    model: emptyIndex(),
    tool: emptyIndex(),
    hook: emptyIndex(),
    effect: emptyIndex(),
    endpoint: emptyIndex(),
  }
  const pending = [...found]
  const madeSubagents: MadeSubagent[] = []
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
    pending.push(...addRead({ catalog, made: madeSubagents }, { kind, value }, place))
  }
  for (const { entry, source } of madeSubagents) {
    const other = catalog.agent.byName.get(entry.name ?? '')
    addDefinition(catalog.agent, other?.definition === source ? asOwnAgent(entry) : entry, 'agent')
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

/** Adds one definition to the list of its kind, and returns the objects that it refers to. */
function addRead<Kind extends DefinitionKind>(
  { catalog, made }: { readonly catalog: Catalog; readonly made: MadeSubagent[] },
  { kind, value }: { readonly kind: Kind; readonly value: Record<string, unknown> },
  found: Place,
): ListedDefinition[] {
  const index: DefinitionIndex<Reads[Kind]> = catalog[kind]
  if (index.byObject.has(value)) return []
  // Endpoints have no name; they are identified by method and path.
  const words = kind === 'endpoint' ? [value['method'], value['path']] : [value[nameField(kind)]]
  const isNamed = words.every((word) => typeof word === 'string')
  const label = isNamed ? words.join(' ') : undefined
  const place = {
    ...found,
    subject: label === undefined ? `${kind} in ${found.subject}` : `${kind} "${label}"`,
  }
  const fields = readers[kind](value, place)
  if (fields === undefined) return []
  const name = label?.trim() === '' ? undefined : label
  const entry: GatheredDefinition<Reads[Kind]> = { definition: value, read: fields, name, place }
  index.byObject.set(value, entry)
  const source = sourceOf(value)
  // Whether the agent of which it was made has the same name is known when all definitions are read.
  if (source) made.push({ entry: entry as GatheredDefinition<ReadAgent>, source })
  else addDefinition(index, entry, kind)
  return (references[kind]?.(fields) ?? []).map((target) => ({ ...target, from: place.subject }))
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
