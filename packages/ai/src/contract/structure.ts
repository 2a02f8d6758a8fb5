/** A structured answer while it arrives: every member may still be missing, at every depth. */
export type DeepPartial<T> = T extends readonly (infer Item)[]
  ? readonly DeepPartial<Item>[]
  : T extends object
    ? { readonly [Key in keyof T]?: DeepPartial<T[Key]> }
    : T

/**
 * Data of a structured answer that nothing has checked (UPP §12.2): it may be any JSON. `validate: true` makes it a
 * `Data`; otherwise parse it before you use it.
 */
export interface UncheckedData<Data> {
  /** Never set; only carries the type that the data should have. */
  readonly '~unchecked'?: Data
}

/** The type of data that should be a `Data` and was not checked; `unknown` if nothing says what it should be. */
export type Unchecked<Data> = unknown extends Data ? unknown : UncheckedData<Data> | undefined

/** The type that data has or should have. */
export type Claimed<Data> =
  NonNullable<Data> extends UncheckedData<infer Claim>
    ? unknown extends Claim
      ? Data
      : Claim
    : Data

/** One place where data does not fit its schema. */
export interface DataIssue {
  /** JSON pointer to the value (RFC 6901); empty for the whole answer. */
  readonly pointer: string
  readonly message: string
}

/** Writes a name as a segment of a JSON pointer (RFC 6901 §3). */
export function pointerSegment(name: string | number): string {
  return `/${String(name).replaceAll('~', '~0').replaceAll('/', '~1')}`
}

/** Returns the part of a schema that a local `$ref` names; undefined if there is none. */
export function resolveRef(root: unknown, ref: unknown): unknown {
  if (typeof ref !== 'string' || !ref.startsWith('#')) return undefined
  let part = root
  for (const segment of safeDecode(ref.slice(1)).split('/').slice(1)) {
    const name = segment.replaceAll('~1', '/').replaceAll('~0', '~')
    if (typeof part !== 'object' || part === null || !Object.hasOwn(part, name)) return undefined
    part = (part as Record<string, unknown>)[name]
  }
  return part
}

function safeDecode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** Compares two JSON values as `enum` and `const` do: the order of an object's members does not count. */
export function isEqual(a: unknown, b: unknown): boolean {
  if (a === b) return true
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false
  if (Array.isArray(a) !== Array.isArray(b)) return false
  const [mine, other] = [a as Record<string, unknown>, b as Record<string, unknown>]
  const names = Object.keys(mine)
  return (
    names.length === Object.keys(other).length &&
    names.every((name) => Object.hasOwn(other, name) && isEqual(mine[name], other[name]))
  )
}

/** The keywords of JSON Schema whose value maps names to schemas. */
export const mapKeywords: ReadonlySet<string> = /* @__PURE__ */ new Set([
  'properties',
  'patternProperties',
  '$defs',
  'definitions',
  'dependentSchemas',
  'dependencies',
])
