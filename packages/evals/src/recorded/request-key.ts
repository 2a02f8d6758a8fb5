import type { LLMRequest } from '@skein/ai'
import { messageToJSON } from '@skein/ai'
import { canonicalJson, isObject, type MessageJSON, sha256Hex } from '@skein/base'
import type { RequestContent } from './recorded-thread.ts'
import { mediumKey, withMediaKeys } from './request-media.ts'

/** The parts of a request by which it is compared, each as text. */
export interface RequestKey {
  readonly model: string
  readonly instructions: string
  readonly tools: string
  readonly settings: string
  readonly history: string
}

/** Returns what is compared of a recorded request: no ids, times and cache marks. */
export function keyOfRecorded(content: RequestContent): RequestKey {
  const { provider, model, system, tools, params, structure, messages } = content
  return {
    model: `${provider}/${model}`,
    instructions: system ?? '',
    tools: text(tools),
    settings: text([params, structure ?? null]),
    history: messages.map((message) => messageText(message)).join('\n'),
  }
}

/** Returns the same of a request that is about to be sent. */
export function keyOfRequest(
  { system, tools, params, structure, messages }: LLMRequest,
  { provider, model }: Pick<RequestContent, 'provider' | 'model'>,
): RequestKey {
  const sent = tools.map(({ name, description, parameters }) => ({ name, description, parameters }))
  return {
    model: `${provider}/${model}`,
    instructions: typeof system === 'string' ? system : '',
    tools: text(sent),
    settings: text([params, structure ?? null]),
    history: messages.map((message) => messageText(message, messageToJSON)).join('\n'),
  }
}

/** Whether two requests are the same for a model. */
export function isSameRequest(a: RequestKey, b: RequestKey): boolean {
  return changedPart(a, b) === undefined
}

/** The first part that differs, in the order in which people look for a cause. */
export function changedPart(a: RequestKey, b: RequestKey): keyof RequestKey | undefined {
  return (['model', 'instructions', 'tools', 'settings', 'history'] as const).find(
    (part) => a[part] !== b[part],
  )
}

/** A text by which equal requests are found. */
export function hashOfKey(key: RequestKey): string {
  return sha256Hex(
    JSON.stringify([key.model, key.instructions, key.tools, key.settings, key.history]),
  )
}

function text(value: unknown): string {
  return canonicalJson(JSON.parse(JSON.stringify(value ?? null)))
}

/** Data of the application, with keys in place of the contents of media. */
function withoutMedia(value: unknown): unknown {
  if (Array.isArray(value)) return withMediaKeys(value, withoutMedia)
  if (!isObject(value)) return value
  const medium = mediumKey(value)
  if (medium) return medium
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [name, withoutMedia(inner)]),
  )
}

const messageTexts = new WeakMap<object, string>()

/** The text by which a message is compared. Requests of a thread share most of their messages. */
function messageText<T extends object>(message: T, toJson?: unknown): string {
  const before = messageTexts.get(message)
  if (before !== undefined) return before
  const json =
    typeof toJson === 'function' ? (toJson as (message: T) => MessageJSON)(message) : message
  const made = text(plain(json))
  messageTexts.set(message, made)
  return made
}

/** Members that say nothing to a model, or that differ in every run. */
const LEFT_OUT: ReadonlySet<string> = new Set([
  'id',
  'timestamp',
  'metadata',
  'toolCallId',
  'cache_control',
  'cacheControl',
])

/** A value without ids, times and marks, with keys in place of the contents of media. */
function plain(value: unknown): unknown {
  if (Array.isArray(value)) return withMediaKeys(value, plain)
  if (!isObject(value)) return value
  const medium = mediumKey(value)
  if (medium) return medium
  const kept: Record<string, unknown> = {}
  for (const [name, inner] of Object.entries(value)) {
    // Arguments and results are data of the application: its own ids count.
    if (name === 'arguments' || name === 'result') kept[name] = withoutMedia(inner)
    else if (!LEFT_OUT.has(name)) kept[name] = plain(inner)
  }
  return kept
}
