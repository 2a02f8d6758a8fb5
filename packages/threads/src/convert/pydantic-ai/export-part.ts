import { isObject } from '../../is-object.ts'
import { keepJsonText } from '../../json-notes.ts'
import { setOwn } from '../../json-parse.ts'
import type { ExportContext } from './export.ts'
import { renameKey } from './import-message.ts'
import { CONTENT_KINDS, DATED_PARTS, PART_FIELDS, REQUEST_PARTS, RESPONSE_PARTS } from './types.ts'

type Fields = { readonly [key: string]: unknown }
type Draft = { [key: string]: unknown }

export interface PartExport {
  readonly kind: string
  readonly at: string
  /** Time of the message, for parts born in the thread; undefined for parts that came from Pydantic AI. */
  readonly time: string | undefined
  /** The part was stored as found. */
  readonly verbatim: boolean
  readonly context: ExportContext
}

/** The part as Pydantic AI writes it; undefined when it would refuse it and the policy leaves it out. */
export function exportPart(part: unknown, options: PartExport): unknown {
  const { at, context, time } = options
  if (!isObject(part)) return context.refuse(at, 'not a part') ? undefined : part
  const reason = refusal(part, options)
  if (reason !== undefined && context.refuse(at, reason)) return undefined
  const checked = part['part_kind'] === 'user-prompt' ? withKnownContent(part, at, context) : part
  if (options.verbatim) return checked
  const renamed = withPydanticNames(checked, at, context)
  return time === undefined ? renamed : withDefaults(renamed, time)
}

/** Why Pydantic AI would refuse to load a message with this part. */
function refusal(part: Fields, { kind, context }: PartExport): string | undefined {
  const partKind = part['part_kind']
  const side = kind === 'request' ? REQUEST_PARTS : RESPONSE_PARTS
  const other = kind === 'request' ? RESPONSE_PARTS : REQUEST_PARTS
  const known =
    typeof partKind === 'string' &&
    (context.partKinds ? context.partKinds.has(partKind) : side.has(partKind))
  if (!known) return other.has(partKind as string) ? `no part of a ${kind}` : 'unknown kind of part'
  // A caller's list of kinds does not say on which side they stand; for the kinds we know, we do.
  if (!side.has(partKind) && other.has(partKind)) return `no part of a ${kind}`
  if (partKind === 'tool-call' || partKind === 'builtin-tool-call') {
    const args = part['args']
    const legal = args === undefined || args === null || typeof args === 'string' || isObject(args)
    return legal ? undefined : 'arguments must be text, an object or null'
  }
  if (partKind === 'speech' && part['speaker'] !== (kind === 'request' ? 'user' : 'assistant')) {
    return `this speaker has no place in a ${kind}`
  }
  if (partKind === 'file' && !(isObject(part['content']) && part['content']['kind'] === 'binary')) {
    return 'files must be binary'
  }
  return undefined
}

/** The prompt without content of kinds that would make Pydantic AI refuse the whole history. */
function withKnownContent(part: Fields, at: string, context: ExportContext): Fields {
  const content = part['content']
  if (!Array.isArray(content)) return part
  const kept = content.filter((item: unknown, index) => {
    if (typeof item === 'string') return true
    if (isObject(item) && CONTENT_KINDS.has(item['kind'] as string)) return true
    return !context.refuse(`${at}/content/${index}`, 'unknown kind of content')
  })
  return kept.length === content.length ? part : keepJsonText(part, { ...part, content: kept })
}

/** The way back of `importPart`, and the same for parts born in the thread. */
function withPydanticNames(part: Fields, at: string, context: ExportContext): Fields {
  if (part['part_kind'] === 'thinking') {
    if (!Object.hasOwn(part, 'thinking_id')) return part
    if (!Object.hasOwn(part, 'id')) return renameKey(part, 'thinking_id', 'id')
    // Both names in use: Pydantic AI ignores the one it does not know.
    return part
  }
  if (part['part_kind'] !== 'tool-return') return part
  if (isObject(part['content_ref']))
    context.lose(`${at}/content`, 'only a preview; the content is kept elsewhere')
  const { status, ...rest } = part
  const failed =
    (status === 'error' || status === 'validation_error') && rest['outcome'] === undefined
  return keepJsonText(part, failed ? { ...rest, outcome: 'failed' } : rest)
}

function withDefaults(part: Fields, time: string): Fields {
  const fields = PART_FIELDS[part['part_kind'] as string]
  if (fields === undefined) return part
  const { part_kind, ...rest } = part
  const given: Draft = rest
  if (DATED_PARTS.has(part_kind as string)) given['timestamp'] ??= time
  if (part_kind === 'thinking') given['content'] ??= ''
  const ordered = inOrder(given, fields)
  ordered['part_kind'] = part_kind
  return keepJsonText(part, ordered)
}

/** The given fields in the order of `known`, with its defaults; further ones come last. */
export function inOrder(given: Fields, known: Fields): Draft {
  const ordered: Draft = {}
  for (const key of Object.keys(known)) {
    const value = given[key] === undefined ? known[key] : given[key]
    if (value !== undefined) ordered[key] = value
  }
  for (const key of Object.keys(given)) {
    if (!Object.hasOwn(ordered, key)) setOwn(ordered, key, given[key])
  }
  return ordered
}
