import { isOfType, isPlainObject, type JsonSchema } from '@skein/base'
import { isEqual, resolveRef } from '../contract/structure.ts'

/**
 * Checks whether a schema accepts null. A keyword that this function does not know counts as accepting it.
 */
export function allowsNull(schema: unknown, root: unknown, depth = 0): boolean {
  if (!isPlainObject(schema)) return schema !== false
  if (depth > MAX_DEPTH) return true
  const isNullable = (part: unknown): boolean => allowsNull(part, root, depth + 1)
  const { type, $ref, anyOf, oneOf, allOf } = schema
  if (type !== undefined && ![type].flat().includes('null')) return false
  if (Array.isArray(schema['enum']) && !schema['enum'].includes(null)) return false
  if ('const' in schema && schema['const'] !== null) return false
  if (Array.isArray(anyOf) && !anyOf.some(isNullable)) return false
  if (Array.isArray(oneOf) && !oneOf.some(isNullable)) return false
  if (Array.isArray(allOf) && !allOf.every(isNullable)) return false
  return $ref === undefined || isNullable(resolveRef(root, $ref) ?? true)
}

/** Schemas and data nested deeper than this are not examined further. */
const MAX_DEPTH = 200
/** Unions in unions can be compared in very many ways; after this many steps the data stays as it is. */
const MAX_STEPS = 1_000_000

/** Returns the names that an object schema requires. */
export function requiredNames(schema: JsonSchema): ReadonlySet<unknown> {
  return new Set(Array.isArray(schema['required']) ? schema['required'] : [])
}

/**
 * Returns the data of a structured answer without the nulls that stand for optional properties. Vendors that
 * require every property are asked for null where a property is absent; a null that the schema itself
 * accepts is data, and stays. With `isPartial`, the data may be the beginning of an answer.
 */
export function withoutNulls(schema: JsonSchema, data: unknown, isPartial = false): unknown {
  return hasNull(data, 0) ? new NullRemover(schema, isPartial).restore(schema, data, 0) : data
}

/** Does the same for a part of an answer, whose schema is a part of the schema `root`. */
export function withoutNullsAt(root: JsonSchema, schema: unknown, data: unknown): unknown {
  return hasNull(data, 0) ? new NullRemover(root, false).restore(schema, data, 0) : data
}

function hasNull(data: unknown, depth: number): boolean {
  if (typeof data !== 'object' || data === null) return data === null
  return depth > MAX_DEPTH || Object.values(data).some((member) => hasNull(member, depth + 1))
}

class NullRemover {
  readonly #root: JsonSchema
  readonly #isPartial: boolean
  #steps = 0

  constructor(root: JsonSchema, isPartial: boolean) {
    this.#root = root
    this.#isPartial = isPartial
  }

  restore(schema: unknown, value: unknown, depth: number): unknown {
    if (!isPlainObject(schema) || typeof value !== 'object' || value === null) return value
    if (depth > MAX_DEPTH || ++this.#steps > MAX_STEPS) return value
    const { $ref, allOf } = schema
    const branches = schema['anyOf'] ?? schema['oneOf']
    let result: unknown = value
    if ($ref !== undefined) result = this.restore(resolveRef(this.#root, $ref), result, depth + 1)
    if (Array.isArray(allOf))
      for (const part of allOf) result = this.restore(part, result, depth + 1)
    if (Array.isArray(branches)) result = this.#restoreUnion(branches, result, depth + 1)
    if (Array.isArray(result)) return this.#restoreItems(schema, result, depth + 1)
    return this.#restoreProperties(schema, result as Record<string, unknown>, depth + 1)
  }

  /**
   * Data that fits a branch exactly is left as it is. Otherwise the first branch that it fits, if null counts
   * as absent for optional properties, decides which nulls are removed.
   */
  #restoreUnion(branches: readonly unknown[], value: unknown, depth: number): unknown {
    if (branches.some((branch) => this.#fits(branch, value, depth, 'exact'))) return value
    const branch = branches.find((one) => this.#fits(one, value, depth, 'nulls'))
    return branch === undefined ? value : this.restore(branch, value, depth)
  }

  #restoreItems(schema: JsonSchema, items: readonly unknown[], depth: number): unknown[] {
    const { prefix, rest } = itemSchemas(schema)
    return items.map((item, i) => this.restore(i < prefix.length ? prefix[i] : rest, item, depth))
  }

  #restoreProperties(
    schema: JsonSchema,
    value: Record<string, unknown>,
    depth: number,
  ): Record<string, unknown> {
    const { properties, additionalProperties } = schema
    if (!isPlainObject(properties) && !isPlainObject(additionalProperties)) return value
    const requiredSet = requiredNames(schema)
    const entries: [string, unknown][] = []
    for (const [name, member] of Object.entries(value)) {
      const isKnown = isPlainObject(properties) && Object.hasOwn(properties, name)
      const own = isKnown ? properties[name] : additionalProperties
      if (isKnown && member === null && !requiredSet.has(name) && !allowsNull(own, this.#root))
        continue
      entries.push([name, this.restore(own, member, depth)])
    }
    return Object.fromEntries(entries)
  }

  /**
   * Checks the kind and the members of a value, not its limits (`pattern`, `minimum` …): enough to find the branch of
   * a union. `nulls` accepts null for an optional property; `shallow` checks only the kind, `enum` and `const`.
   */
  #fits(
    schema: unknown,
    value: unknown,
    depth: number,
    mode: 'exact' | 'nulls' | 'shallow',
  ): boolean {
    if (!isPlainObject(schema)) return schema !== false
    if (depth > MAX_DEPTH || ++this.#steps > MAX_STEPS) return true
    const fits = (part: unknown, inner = value): boolean => this.#fits(part, inner, depth + 1, mode)
    const { type, $ref, anyOf, oneOf, allOf, enum: values } = schema
    if (type !== undefined && ![type].flat().some((name) => isOfType(name, value))) return false
    if (Array.isArray(values) && !values.some((one) => isEqual(one, value))) return false
    if ('const' in schema && !isEqual(schema['const'], value)) return false
    if (mode === 'shallow') return true
    if ($ref !== undefined && !fits(resolveRef(this.#root, $ref) ?? true)) return false
    if (Array.isArray(anyOf) && !anyOf.some((part) => fits(part))) return false
    if (Array.isArray(oneOf) && !oneOf.some((part) => fits(part))) return false
    if (Array.isArray(allOf) && !allOf.every((part) => fits(part))) return false
    if (Array.isArray(value)) {
      const { prefix, rest } = itemSchemas(schema)
      return value.every((item, i) => fits(i < prefix.length ? prefix[i] : (rest ?? true), item))
    }
    return !isPlainObject(value) || this.#fitsMembers(schema, value, depth, mode)
  }

  #fitsMembers(
    schema: JsonSchema,
    value: Record<string, unknown>,
    depth: number,
    mode: 'exact' | 'nulls',
  ): boolean {
    const { properties, additionalProperties } = schema
    const requiredSet = requiredNames(schema)
    const isThere = (name: unknown): boolean => Object.hasOwn(value, String(name))
    if (!this.#isPartial && ![...requiredSet].every(isThere)) return false
    const members = Object.entries(value).map(([name, member]) => {
      const isKnown = isPlainObject(properties) && Object.hasOwn(properties, name)
      const isAbsent = isKnown && mode === 'nulls' && member === null && !requiredSet.has(name)
      const own = isKnown ? properties[name] : additionalProperties
      return { own: isAbsent ? true : own, member }
    })
    // A shallow check of all members, which compares their types and constants, comes first. Without it, the
    // cost of a union inside a union would double with each level.
    return (
      members.every(({ own, member }) => this.#fits(own, member, depth + 1, 'shallow')) &&
      members.every(({ own, member }) => this.#fits(own, member, depth + 1, mode))
    )
  }
}

/** Returns the schemas of the first items (2020-12 `prefixItems`, draft-07 a list in `items`) and of others. */
export function itemSchemas(schema: JsonSchema): { prefix: readonly unknown[]; rest: unknown } {
  const { prefixItems, items, additionalItems } = schema
  if (Array.isArray(prefixItems)) return { prefix: prefixItems, rest: items }
  return Array.isArray(items)
    ? { prefix: items, rest: additionalItems }
    : { prefix: [], rest: items }
}
