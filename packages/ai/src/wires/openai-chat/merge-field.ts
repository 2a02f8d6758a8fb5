import type { JsonValue } from '@skein/base'
import { objectOf } from '../read-json.ts'

/**
 * Adds to a field that grows over a stream: lists are joined, objects field by field, else the
 * last value stands. What is given is copied, so `fields` alone is changed; the cost is linear.
 */
export function mergeField(fields: Record<string, JsonValue>, key: string, value: JsonValue): void {
  if (key === '__proto__' || value === null) return
  const before = fields[key]
  const object = objectOf(value)
  if (Array.isArray(value)) {
    if (!Array.isArray(before)) fields[key] = [...value]
    else for (const item of value) before.push(item)
  } else if (object) {
    // Objects in `fields` were made here, so they may grow.
    const merged = (objectOf(before) ?? {}) as Record<string, JsonValue>
    for (const inner of Object.keys(object)) mergeField(merged, inner, object[inner]!)
    fields[key] = merged
  } else fields[key] = value
}
