import type { JsonObject, JsonValue } from '@skein/base'
import { isEmpty, objectOf } from '../read-json.ts'

/** Fields of a candidate and of a frame that do not go into the metadata of the message. */
export const candidateKeys: ReadonlySet<string> = new Set(['content', 'finishReason', 'index'])
export const frameKeys: ReadonlySet<string> = new Set([
  'candidates',
  'usageMetadata',
  'promptFeedback',
  'responseId',
  'modelVersion',
  'error',
])
/** Each frame has its own share of these; of everything else the last word counts. */
const growing = new Set(['citationMetadata', 'logprobsResult'])

/** The first candidate; others are the caller's to read from the vendor itself. */
export function firstCandidate(candidates: JsonValue | undefined): JsonObject | undefined {
  if (!Array.isArray(candidates)) return undefined
  for (const item of candidates as readonly JsonValue[]) {
    const candidate = objectOf(item)
    if (candidate && (candidate['index'] ?? 0) === 0) return candidate
  }
  return undefined
}

/** Adds what a frame says to what earlier ones said. Lists that grow are ours to grow in place. */
export function mergeFields(before: JsonObject, after: JsonObject): JsonObject {
  let merged = before
  for (const [key, value] of Object.entries(after)) {
    const fields = objectOf(value)
    if (fields && isEmpty(fields)) continue
    merged = {
      ...merged,
      [key]: fields && growing.has(key) ? growLists(objectOf(before[key]), fields) : value,
    }
  }
  return merged
}

function growLists(before: JsonObject | undefined, after: JsonObject): JsonObject {
  const grown = Object.entries(after).map(([key, value]): [string, JsonValue | undefined] => {
    if (!Array.isArray(value)) return [key, value]
    const list = before?.[key]
    if (!Array.isArray(list)) return [key, [...(value as JsonValue[])]]
    for (const item of value as JsonValue[]) (list as JsonValue[]).push(item)
    return [key, list]
  })
  return { ...before, ...Object.fromEntries(grown) }
}
