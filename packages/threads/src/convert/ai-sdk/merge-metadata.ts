import { isObject } from '../../is-object.ts'
/** Merges message metadata as the client does: objects key by key, everything else replaced. */
export function mergeMetadata(base: unknown, change: unknown): unknown {
  if (!isObject(base) || !isObject(change)) return change
  const merged: Record<string, unknown> = { ...base }
  for (const [key, value] of Object.entries(change)) {
    // The client skips these too, so that a stream cannot reach a prototype.
    if (key === '__proto__' || key === 'constructor' || key === 'prototype' || value === undefined)
      continue
    merged[key] = key in merged ? mergeMetadata(merged[key], value) : value
  }
  return merged
}
