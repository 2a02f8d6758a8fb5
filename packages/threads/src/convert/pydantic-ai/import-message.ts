import { isObject } from '@skein/base'
import type { ConfigStore } from './config-store.ts'
import { jsonNotesOf, keepJsonText, stringifyJson } from '../../json/json-stringify.ts'
import { setOwn } from '../../json/json-parse.ts'
import type { SystemPromptMark } from '../../document/thread.ts'
import type { ToolReturnStatus } from '../../document/part.ts'
import { instantOf } from '../../document/timestamp.ts'
import { validateTurns } from '../../document/validate.ts'

type Fields = { readonly [key: string]: unknown }
type Draft = { [key: string]: unknown }

interface MessageImport {
  /** Whether the message becomes a UserTurn or a message of an AgentTurn. */
  readonly owner: 'user' | 'agent'
  /** The time to store for the message. */
  readonly time: string
  readonly agentId: string
  /** The store for prompts; undefined keeps them in the thread. */
  readonly configs: ConfigStore | undefined
}

/**
 * Field names that the thread itself uses. A source field with such a name is stored in `pydantic_ai.fields`
 * instead.
 */
export const RESERVED: { readonly [owner in 'user' | 'agent']: ReadonlySet<string> } = {
  user: new Set([
    'turn_type',
    'submitted_at',
    'turn_id',
    'user_id',
    'name',
    'client_metadata',
    'instructions_ref',
    'system_prompts',
    'pydantic_ai',
  ]),
  agent: new Set(['message_type', 'agent_id', 'instructions_ref', 'system_prompts', 'pydantic_ai']),
}

/**
 * Converts one message, key by key in the order of the source, so that the export can reverse it: `kind`
 * becomes `turn_type` or `message_type` at the same position, and so on. Anything that could not be restored
 * from the result is recorded in `pydantic_ai`. So are fields and parts of later versions that a reader of
 * threads refuses, for example an unknown finish reason: an import never makes a document that cannot be read.
 */
export function importMessage(source: Fields, options: MessageImport): Draft {
  const draft = convert(source, options, false)
  const isPlain = (draft['parts'] as readonly unknown[]).every(
    (part) => !isObject(part) || part['part_kind'] !== KEPT_PART,
  )
  return isPlain && isReadable(draft, options) ? draft : convert(source, options, true)
}

/** Converts a message. With `isChecked`, fields and parts that readers of threads would refuse are stored apart. */
function convert(source: Fields, options: MessageImport, isChecked: boolean): Draft {
  const { owner, time, configs } = options
  const timeName = owner === 'user' ? 'submitted_at' : 'timestamp'
  const draft: Draft = {}
  const origin: Draft = {}
  const newNames = new Map<string, string>()
  const rename = (key: string, name: string): string => {
    newNames.set(key, name)
    return name
  }
  for (const key of Object.keys(source)) {
    const value = source[key]
    const isRefused = isChecked && key !== 'parts' && !isReadable({ [key]: value }, options)
    if (RESERVED[owner].has(key) || (isRefused && !CONVERTED.has(key)))
      setOwn((origin['fields'] ??= {}) as Draft, key, value)
    else if (key === 'kind') {
      if (owner === 'user') draft[rename(key, 'turn_type')] = 'user'
      else draft[rename(key, 'message_type')] = value
    } else if (key === 'timestamp') {
      draft[rename(key, timeName)] = time
      if (!isTime(value)) origin['timestamp'] = value
    } else if (key === 'instructions' && typeof value === 'string' && configs) {
      draft[rename(key, 'instructions_ref')] = configs.put(value)
    } else if (key === 'parts') {
      importParts(value as readonly unknown[], configs, draft, origin)
      if (isChecked)
        draft['parts'] = (draft['parts'] as unknown[]).map((part) => readable(part, options))
    } else setOwn(draft, key, value)
  }
  if (!Object.hasOwn(source, 'timestamp')) {
    draft[timeName] = time
    origin['absent'] = ['timestamp']
  }
  if (owner === 'agent') draft['agent_id'] = options.agentId
  if (origin['fields']) {
    origin['keys'] = jsonNotesOf(source)?.keys ?? Object.keys(source)
    keepJsonText(source, origin['fields'])
  }
  draft['pydantic_ai'] = origin
  return keepJsonText(source, draft, (key) => newNames.get(key) ?? key)
}

/** Keys whose values are always converted, so that a value that readers of threads would refuse does no harm. */
const CONVERTED = new Set(['kind', 'timestamp', 'parts'])

/** Whether `parseThread` accepts a message with these fields. */
function isReadable(fields: Draft, { owner, time, agentId }: MessageImport): boolean {
  const { kind: _, ...own } = fields
  const message =
    owner === 'user'
      ? { parts: [], ...own, turn_type: 'user', submitted_at: time }
      : { message_type: 'response', parts: [], ...own, timestamp: time, agent_id: agentId }
  const turn =
    owner === 'user'
      ? message
      : {
          turn_type: 'agent',
          agent_id: agentId,
          started_at: time,
          completed_at: time,
          messages: [message],
        }
  return validateTurns([turn]).wellFormed
}

/** The kind of a part that wraps a part of Pydantic AI which readers of threads would refuse. */
export const KEPT_PART = 'pydantic_ai.part'

/** Returns the part, wrapped in a part of the kind `KEPT_PART` if readers of threads would refuse it. */
function readable(part: unknown, options: MessageImport): unknown {
  const kind = isObject(part) ? part['part_kind'] : undefined
  if (kind === 'system-prompt' || (kind !== KEPT_PART && isReadable({ parts: [part] }, options)))
    return part
  return { part_kind: KEPT_PART, part }
}

/**
 * Stores the parts in `draft`. If `configs` is given, system prompts are moved to that store, and a mark
 * records the position of each.
 */
function importParts(
  parts: readonly unknown[],
  configs: ConfigStore | undefined,
  draft: Draft,
  origin: Draft,
): void {
  const newParts: unknown[] = []
  const marks: SystemPromptMark[] = []
  const verbatim: number[] = []
  for (const part of parts) {
    if (isObject(part) && part['part_kind'] === 'system-prompt' && configs) {
      const at = newParts.length
      if (typeof part['content'] !== 'string' || Object.hasOwn(part, 'content_ref')) {
        marks.push({ at, prompt: {}, part_ref: configs.put(stringifyJson(part)) })
      } else {
        const prompt = renameKey(part, 'content', 'content_ref')
        prompt['content_ref'] = configs.put(part['content'])
        marks.push({ at, prompt })
      }
      continue
    }
    const own = importPart(part)
    if (own === undefined) verbatim.push(newParts.length)
    newParts.push(own ?? part)
  }
  draft['parts'] = newParts
  if (marks.length > 0) draft['system_prompts'] = marks
  if (verbatim.length > 0) origin['verbatim'] = verbatim
}

/** Converts a part to the thread's form; undefined when its field names clash with the thread's. */
function importPart(part: unknown): unknown {
  if (!isObject(part)) return part
  if (part['part_kind'] === 'thinking') {
    if (Object.hasOwn(part, 'thinking_id')) return undefined
    return Object.hasOwn(part, 'id') ? renameKey(part, 'id', 'thinking_id') : part
  }
  if (part['part_kind'] === 'tool-return') {
    if (Object.hasOwn(part, 'status')) return undefined
    // Every outcome but `success` is stored as an error. Histories from before `outcome` existed contain
    // successes only.
    const { outcome } = part
    const isSuccess = outcome === undefined || outcome === 'success'
    const status: ToolReturnStatus = isSuccess ? 'success' : 'error'
    return keepJsonText(part, { ...part, status })
  }
  return part
}

/** Returns a copy in which one key is renamed, at the same position. */
export function renameKey(source: Fields, from: string, to: string): Draft {
  const copy: Draft = {}
  for (const key of Object.keys(source)) setOwn(copy, key === from ? to : key, source[key])
  return keepJsonText(source, copy, (key) => (key === from ? to : key))
}

/** True for text that a thread can store as a time. */
export function isTime(value: unknown): value is string {
  return typeof value === 'string' && !Number.isNaN(instantOf(value))
}
