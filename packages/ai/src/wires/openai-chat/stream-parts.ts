import type { JsonObject, JsonValue } from '@skein/base'
import { objectOf } from '../read-json.ts'
import type { ChatChunk } from './types.ts'

/**
 * Merges a value into a field that grows over a stream: lists are appended, objects merged field by
 * field, other values replaced. Values are copied, so only `fields` changes; the cost is linear.
 */
export function mergeField(fields: Record<string, JsonValue>, key: string, value: JsonValue): void {
  if (key === '__proto__' || value === null) return
  const before = fields[key]
  const object = objectOf(value)
  if (Array.isArray(value)) {
    if (!Array.isArray(before)) fields[key] = [...value]
    else for (const item of value) before.push(item)
  } else if (object) {
    // Objects in `fields` were created here, so they may be changed.
    const merged = (objectOf(before) ?? {}) as Record<string, JsonValue>
    for (const inner of Object.keys(object)) mergeField(merged, inner, object[inner]!)
    fields[key] = merged
  } else fields[key] = value
}

/** Returns the text of a chunk that adds nothing else to the message; undefined for other chunks. */
export function textAlone({ choices, usage, error, x_groq }: ChatChunk): string | undefined {
  if (!Array.isArray(choices) || choices.length !== 1 || usage || error || x_groq) return undefined
  const { delta, logprobs, usage: its, ...rest } = (choices[0] ?? {}) as Choice
  if (logprobs || its || typeof delta?.['content'] !== 'string') return undefined
  // Objects in which chunks describe their choice again add nothing to those of the chunk that was read.
  if (Object.values(rest).some((value) => value && !objectOf(value))) return undefined
  for (const key in delta)
    if (key !== 'content' && key !== 'role' && delta[key] !== null) return undefined
  return delta['content']
}

interface Choice {
  readonly delta?: JsonObject
  readonly logprobs?: JsonObject
  readonly usage?: JsonObject
}
