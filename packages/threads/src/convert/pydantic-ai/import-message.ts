import { isObject } from '@skein/base'
import type { ConfigStore } from './config-store.ts'
import { keepJsonText, stringifyJson } from '../../json/json-stringify.ts'
import { setOwn } from '../../json/json-parse.ts'
import type { SystemPromptMark } from '../../document/thread.ts'
import type { ToolReturnStatus } from '../../document/part.ts'
import { instantOf } from '../../document/timestamp.ts'

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
 * from the result is recorded in `pydantic_ai`.
 */
export function importMessage(source: Fields, options: MessageImport): Draft {
  const { owner, time, configs } = options
  const timeName = owner === 'user' ? 'submitted_at' : 'timestamp'
  const draft: Draft = {}
  const origin: Draft = {}
  const renamed = new Map<string, string>()
  const rename = (key: string, name: string): string => {
    renamed.set(key, name)
    return name
  }
  for (const key of Object.keys(source)) {
    const value = source[key]
    if (RESERVED[owner].has(key)) setOwn((origin['fields'] ??= {}) as Draft, key, value)
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
    } else setOwn(draft, key, value)
  }
  if (!Object.hasOwn(source, 'timestamp')) {
    draft[timeName] = time
    origin['absent'] = ['timestamp']
  }
  if (owner === 'agent') draft['agent_id'] = options.agentId
  if (origin['fields']) {
    origin['keys'] = Object.keys(source)
    keepJsonText(source, origin['fields'])
  }
  draft['pydantic_ai'] = origin
  return keepJsonText(source, draft, (key) => renamed.get(key) ?? key)
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
  const stored: unknown[] = []
  const marks: SystemPromptMark[] = []
  const verbatim: number[] = []
  for (const part of parts) {
    if (isObject(part) && part['part_kind'] === 'system-prompt' && configs) {
      const at = stored.length
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
    if (own === undefined) verbatim.push(stored.length)
    stored.push(own ?? part)
  }
  draft['parts'] = stored
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
