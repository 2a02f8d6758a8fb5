import type { LLMRequest } from '@skein/ai'
import { messageToJSON } from '@skein/ai'
import { canonicalJson, isObject, type JsonObject, type MessageJSON, sha256Hex } from '@skein/base'
import type { RequestContent } from './recorded-thread.ts'

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
    history: text(messages.map(plainMessage)),
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
    history: text(messages.map((message) => plainMessage(messageToJSON(message)))),
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

/** Members that say nothing to a model, or that differ in every run. */
const LEFT_OUT: ReadonlySet<string> = new Set([
  'id',
  'timestamp',
  'metadata',
  'toolCallId',
  'cache_control',
  'cacheControl',
])

/** A message without ids, times and marks. Calls and results are numbered, so that they still belong together. */
function plainMessage(message: MessageJSON): JsonObject {
  return plain(message) as JsonObject // a message is an object
}

function plain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plain)
  if (!isObject(value)) return value
  const kept: Record<string, unknown> = {}
  for (const [name, inner] of Object.entries(value)) {
    // Arguments and results are data of the application: its own ids count.
    if (name === 'arguments' || name === 'result') kept[name] = inner
    else if (!LEFT_OUT.has(name)) kept[name] = plain(inner)
  }
  return kept
}
