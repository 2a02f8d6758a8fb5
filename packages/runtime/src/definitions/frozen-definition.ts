import { isPlainObject } from '@skein/base'

/**
 * Returns a frozen copy of plain data. Objects with an identity (definitions, models, schemas, tools, class
 * instances, and frozen objects) are not copied.
 */
export function frozenDefinition<T>(value: T): T {
  return copy(value, new Map()) as T // a copy has the same type
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

/** The keys that identify definitions, schemas, models and tools. */
const identifying = ['kind', 'sideA', '~standard', 'provider', 'run'] as const
