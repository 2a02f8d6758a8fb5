import { isObject } from '@skein/base'
import { joinPointer } from '../../issue.ts'
import { keepJsonText, numberText, setJsonNotes } from '../../json/json-stringify.ts'
import { parseJson, setOwn } from '../../json/json-parse.ts'
import type {
  PydanticOrigin,
  SystemPromptMark,
  ThreadMessage,
  UserTurn,
} from '../../document/thread.ts'
import type { ExportContext } from './export.ts'
import { KEPT_PART, renameKey, RESERVED } from './import-message.ts'
import { CONTENT_KINDS, FINISH_REASONS, REQUEST_PARTS, RESPONSE_PARTS } from './names.ts'
import { DATED_PARTS, MESSAGE_FIELDS, PART_FIELDS, USAGE_FIELDS } from './fields.ts'
import { type PydanticMessage } from './types.ts'

type Fields = { readonly [key: string]: unknown }
type Draft = { [key: string]: unknown }

interface Export {
  readonly kind: string
  readonly at: string
  readonly owner: 'user' | 'agent'
  readonly context: ExportContext
}

/** Converts a ThreadMessage, or the UserTurn that is the first request of a run, to a Pydantic AI message. */
export function exportMessage(
  message: ThreadMessage | UserTurn,
  at: string,
  context: ExportContext,
): PydanticMessage {
  const source = message as unknown as Fields
  const owner = source['turn_type'] === 'user' ? 'user' : 'agent'
  const kind = owner === 'agent' && source['message_type'] === 'response' ? 'response' : 'request'
  const origin = source['pydantic_ai']
  const draft = isObject(origin)
    ? goBack(source, origin as PydanticOrigin, { kind, at, owner, context })
    : fromThread(source, { kind, at, owner, context })
  const reason = draft['finish_reason']
  // A finish reason that an import kept comes back, so that the round trip loses nothing; only `strict` refuses it,
  // because the caller asks for a history that the known version of Pydantic AI accepts.
  const isImported =
    isObject(origin) && isObject(origin['fields']) && 'finish_reason' in origin['fields']
  const isKept = isImported && context.policy !== 'strict'
  const isUnknown = typeof reason === 'string' && !FINISH_REASONS.has(reason) && !isKept
  if (isUnknown && context.refuse(`${at}/finish_reason`, 'unknown finish reason'))
    draft['finish_reason'] = null
  return draft as unknown as PydanticMessage
}

/** Reverses `importMessage`, key by key in the order of the stored message. */
function goBack(
  source: Fields,
  origin: PydanticOrigin,
  { kind, at, owner, context }: Export,
): Draft {
  const draft: Draft = {}
  const newNames = new Map<string, string>()
  const rename = (key: string, name: string): string => {
    newNames.set(key, name)
    return name
  }
  for (const key of Object.keys(source)) {
    if (key === 'parts') draft['parts'] = exportParts(source, kind, at, context)
    else if (key === (owner === 'user' ? 'turn_type' : 'message_type'))
      draft[rename(key, 'kind')] = kind
    else if (key === (owner === 'user' ? 'submitted_at' : 'timestamp')) {
      if (origin.absent?.includes('timestamp')) continue
      draft[rename(key, 'timestamp')] = Object.hasOwn(origin, 'timestamp')
        ? origin.timestamp
        : source[key]
    } else if (key === 'instructions_ref') {
      draft[rename(key, 'instructions')] = lookUp(source[key], `${at}/${key}`, context)
    } else if (!RESERVED[owner].has(key)) setOwn(draft, key, source[key])
  }
  keepJsonText(source, draft, (key) => newNames.get(key) ?? key)
  return origin.fields && origin.keys ? withFields(draft, origin.fields, origin.keys) : draft
}

/** Puts the fields that were stored in `pydantic_ai.fields` back at their original positions. */
function withFields(draft: Draft, fields: Fields, keys: readonly string[]): Draft {
  const result: Draft = {}
  const all = [...new Set([...keys, ...Object.keys(draft)])]
  const numbers = new Map<string, string>()
  for (const key of all) {
    const holder = Object.hasOwn(fields, key) ? fields : draft
    if (!Object.hasOwn(holder, key)) continue
    setOwn(result, key, holder[key])
    const text = numberText(holder, key)
    if (text !== undefined) numbers.set(key, text)
  }
  setJsonNotes(result, { numbers, keys: all })
  return result
}

/**
 * Converts a message that did not come from Pydantic AI: it gets the fields that Pydantic AI would write, in
 * its order.
 */
function fromThread(source: Fields, { kind, at, owner, context }: Export): Draft {
  const fields = MESSAGE_FIELDS[kind]!
  const given: Draft = {}
  for (const key of Object.keys(source)) {
    if (key in fields) given[key] = source[key]
    else if (!RESERVED[owner].has(key)) {
      if (context.policy === 'raw') setOwn(given, key, source[key])
      else context.lose(joinPointer(at, key), 'Pydantic AI has no such field')
    }
  }
  given['kind'] = kind
  given['timestamp'] = source['timestamp'] ?? source['submitted_at']
  given['parts'] = exportParts(source, kind, at, context)
  if (source['instructions_ref'] !== undefined) {
    given['instructions'] = lookUp(source['instructions_ref'], `${at}/instructions_ref`, context)
  }
  const { usage } = source
  if (kind === 'response' && !isObject(usage)) given['usage'] = { ...USAGE_FIELDS }
  else if (kind === 'response' && isObject(usage)) {
    // Pydantic AI does not have these two counters: it counts thinking inside `output_tokens` and derives the
    // total.
    const { thinking_tokens, total_tokens, ...counters } = usage
    if (thinking_tokens !== undefined)
      context.lose(`${at}/usage/thinking_tokens`, 'Pydantic AI counts it inside output_tokens')
    if (total_tokens !== undefined)
      context.lose(`${at}/usage/total_tokens`, 'Pydantic AI derives it')
    given['usage'] = keepJsonText(usage, inOrder(counters, USAGE_FIELDS))
  }
  return keepJsonText(source, inOrder(given, fields))
}

function exportParts(message: Fields, kind: string, at: string, context: ExportContext): unknown[] {
  const parts = message['parts'] as readonly unknown[]
  const origin = message['pydantic_ai'] as PydanticOrigin | undefined
  const marks = (message['system_prompts'] ?? []) as readonly SystemPromptMark[]
  const time = (message['timestamp'] ?? message['submitted_at']) as string
  const exported: unknown[] = []
  let nextMark = 0
  const prompts = (limit: number): void => {
    for (; nextMark < marks.length && marks[nextMark]!.at <= limit; nextMark++) {
      exported.push(...exportPrompt(marks[nextMark]!, `${at}/system_prompts/${nextMark}`, context))
    }
  }
  for (const [index, part] of parts.entries()) {
    prompts(index)
    const own = exportPart(part, {
      kind,
      at: `${at}/parts/${index}`,
      time: origin ? undefined : time,
      verbatim: origin?.verbatim?.includes(index) === true,
      context,
    })
    if (own !== undefined) exported.push(own)
  }
  // System prompts whose position is beyond the end, because parts were removed, are added last.
  prompts(Infinity)
  return exported
}

function exportPrompt(mark: SystemPromptMark, at: string, context: ExportContext): unknown[] {
  if (mark.part_ref !== undefined) {
    const text = lookUp(mark.part_ref, at, context)
    return text === null ? [] : [parseJson(text).value]
  }
  if (mark.prompt.content_ref === undefined) return [mark.prompt]
  const content = lookUp(mark.prompt.content_ref, at, context)
  if (content === null) return []
  const part = renameKey(mark.prompt, 'content_ref', 'content')
  part['content'] = content
  return [part]
}

function lookUp(ref: unknown, at: string, context: ExportContext): string | null {
  const text = typeof ref === 'string' ? context.configs.get(ref) : undefined
  if (text === undefined) context.lose(at, 'the config store does not hold this text')
  return text ?? null
}

interface PartExport {
  readonly kind: string
  readonly at: string
  /** The message's time, for parts that did not come from Pydantic AI; undefined for parts that did. */
  readonly time: string | undefined
  /** True when the import stored the part unchanged. */
  readonly verbatim: boolean
  readonly context: ExportContext
}

/**
 * Converts a part to Pydantic AI's form. Returns undefined when Pydantic AI would reject the part and the
 * policy is to leave it out.
 */
function exportPart(part: unknown, options: PartExport): unknown {
  const { at, context, time } = options
  // The import wraps a part that readers of threads would refuse into another part. The inner part is
  // exported, in the form that it came in or, if its kind is known, in the thread's form.
  if (isObject(part) && part['part_kind'] === KEPT_PART && 'part' in part)
    return exportPart(part['part'], options)
  if (!isObject(part)) return context.refuse(at, 'not a part') ? undefined : part
  const reason = refusal(part, options)
  if (reason !== undefined && context.refuse(at, reason)) return undefined
  reportMoved(part, at, context)
  const checked = part['part_kind'] === 'user-prompt' ? withKnownContent(part, at, context) : part
  if (options.verbatim) return checked
  const renamed = withPydanticNames(checked)
  return time === undefined ? renamed : withDefaults(renamed, time)
}

/** Reports contents that `offloadContent` has moved: the thread has only a preview of them, or nothing. */
function reportMoved(part: Fields, at: string, context: ExportContext): void {
  const { content, audio } = part
  const items = Array.isArray(content) ? (content as readonly unknown[]) : [content]
  for (const holder of [part, audio, ...items])
    if (isObject(holder) && isObject(holder['content_ref']))
      context.lose(`${at}/content`, 'only a preview; the content is kept elsewhere')
}

/** Returns why Pydantic AI would reject a message with this part; undefined if it would not. */
function refusal(part: Fields, { kind, context }: PartExport): string | undefined {
  const partKind = part['part_kind']
  const side = kind === 'request' ? REQUEST_PARTS : RESPONSE_PARTS
  const other = kind === 'request' ? RESPONSE_PARTS : REQUEST_PARTS
  const isKnown =
    typeof partKind === 'string' &&
    (context.partKinds ? context.partKinds.has(partKind) : side.has(partKind))
  if (!isKnown)
    return other.has(partKind as string) ? `no part of a ${kind}` : 'unknown kind of part'
  // The caller's `partKinds` do not state which kinds belong to requests and which to responses; for known
  // kinds this is checked here.
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

/** Returns the prompt without content of kinds that would make Pydantic AI reject the whole history. */
function withKnownContent(part: Fields, at: string, context: ExportContext): Fields {
  const content = part['content']
  if (!Array.isArray(content)) return part
  const items = content.filter((item: unknown, index) => {
    if (typeof item === 'string') return true
    if (isObject(item) && CONTENT_KINDS.has(item['kind'] as string)) return true
    return !context.refuse(`${at}/content/${index}`, 'unknown kind of content')
  })
  return items.length === content.length ? part : keepJsonText(part, { ...part, content: items })
}

/** Reverses `importPart`; fields of parts that did not come from Pydantic AI are renamed in the same way. */
function withPydanticNames(part: Fields): Fields {
  if (part['part_kind'] === 'thinking') {
    if (!Object.hasOwn(part, 'thinking_id')) return part
    if (!Object.hasOwn(part, 'id')) return renameKey(part, 'thinking_id', 'id')
    // With both `id` and `thinking_id` the part stays unchanged: Pydantic AI ignores unknown fields.
    return part
  }
  if (part['part_kind'] !== 'tool-return') return part
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
  const inFieldOrder = inOrder(given, fields)
  inFieldOrder['part_kind'] = part_kind
  return keepJsonText(part, inFieldOrder)
}

/** Returns the given fields in the order of `known`, with its defaults; other fields come last. */
function inOrder(given: Fields, known: Fields): Draft {
  const result: Draft = {}
  for (const key of Object.keys(known)) {
    const value = given[key] === undefined ? known[key] : given[key]
    if (value !== undefined) result[key] = value
  }
  for (const key of Object.keys(given)) {
    if (!Object.hasOwn(result, key)) setOwn(result, key, given[key])
  }
  return result
}
