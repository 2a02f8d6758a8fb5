import { isPlainObject } from '@skein/base'

/**
 * A frozen copy of plain data. What has a life or an identity of its own inside (definitions, models,
 * schemas, class instances, anything already frozen) stays the same object.
 */
export function frozenCopy<T>(value: T): T {
  return copy(value, new Map()) as T // a copy has the type of what it copies
}

function copy(value: unknown, seen: Map<object, unknown>): unknown {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value
  if (seen.has(value)) return seen.get(value)
  if (Array.isArray(value)) {
    const items: unknown[] = []
    seen.set(value, items)
    for (const item of value) items.push(copy(item, seen))
    return Object.freeze(items)
  }
  if (!isPlainObject(value) || identifying.some((key) => key in value)) return value
  const fields: Record<string, unknown> = {}
  seen.set(value, fields)
  for (const [key, field] of Object.entries(value)) fields[key] = copy(field, seen)
  return Object.freeze(fields)
}

/** Keys of definitions, schemas and models. */
const identifying = ['kind', 'sideA', '~standard', 'provider'] as const
