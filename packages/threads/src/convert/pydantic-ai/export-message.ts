import { isObject } from '../../is-object.ts'
import { joinPointer } from '../../issue.ts'
import { keepJsonText, numberText, setJsonNotes } from '../../json-notes.ts'
import { parseJson, setOwn } from '../../json-parse.ts'
import type { PydanticOrigin, SystemPromptMark, ThreadMessage, UserTurn } from '../../types.ts'
import type { ExportContext } from './export.ts'
import { exportPart, inOrder } from './export-part.ts'
import { RESERVED, renameKey } from './import-message.ts'
import { FINISH_REASONS, MESSAGE_FIELDS, USAGE_FIELDS, type PydanticMessage } from './types.ts'

type Fields = { readonly [key: string]: unknown }
type Draft = { [key: string]: unknown }

interface Export {
  readonly kind: string
  readonly at: string
  readonly owner: 'user' | 'agent'
  readonly context: ExportContext
}

/** Turns a ThreadMessage, or the UserTurn that is the first request of a run, back into a message. */
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
  if (typeof reason === 'string' && !FINISH_REASONS.has(reason)) {
    if (context.refuse(`${at}/finish_reason`, `unknown finish reason`))
      draft['finish_reason'] = null
  }
  return draft as unknown as PydanticMessage
}

/** The way back of `importMessage`: key by key, in order. */
function goBack(
  source: Fields,
  origin: PydanticOrigin,
  { kind, at, owner, context }: Export,
): Draft {
  const draft: Draft = {}
  const renamed = new Map<string, string>()
  const rename = (key: string, name: string): string => {
    renamed.set(key, name)
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
  keepJsonText(source, draft, (key) => renamed.get(key) ?? key)
  return origin.fields && origin.keys ? withFields(draft, origin.fields, origin.keys) : draft
}

/** Puts the fields that had to step aside back into their places. */
function withFields(draft: Draft, fields: Fields, keys: readonly string[]): Draft {
  const ordered: Draft = {}
  const all = [...new Set([...keys, ...Object.keys(draft)])]
  const numbers = new Map<string, string>()
  for (const key of all) {
    const holder = Object.hasOwn(fields, key) ? fields : draft
    if (!Object.hasOwn(holder, key)) continue
    setOwn(ordered, key, holder[key])
    const text = numberText(holder, key)
    if (text !== undefined) numbers.set(key, text)
  }
  setJsonNotes(ordered, { numbers, keys: all })
  return ordered
}

/** A message that was born in the thread gets the fields Pydantic AI would write, in its order. */
function fromThread(source: Fields, { kind, at, owner, context }: Export): Draft {
  const known = MESSAGE_FIELDS[kind]!
  const given: Draft = {}
  for (const key of Object.keys(source)) {
    if (key in known) given[key] = source[key]
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
  if (kind === 'response') given['usage'] = exportUsage(source['usage'], `${at}/usage`, context)
  return keepJsonText(source, inOrder(given, known))
}

/** The specification's two derived counters are not Pydantic AI's: its totals are inclusive. */
function exportUsage(usage: unknown, at: string, context: ExportContext): unknown {
  if (!isObject(usage)) return { ...USAGE_FIELDS }
  const { thinking_tokens, total_tokens, ...counters } = usage
  if (thinking_tokens !== undefined)
    context.lose(`${at}/thinking_tokens`, 'Pydantic AI counts it inside output_tokens')
  if (total_tokens !== undefined) context.lose(`${at}/total_tokens`, 'Pydantic AI derives it')
  return keepJsonText(usage, inOrder(counters, USAGE_FIELDS))
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
  // A mark may point beyond the end when parts were removed since.
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
