/** A part of a schema whose value JSON cannot represent. */
export interface NonJsonPart {
  /** Where the part is, e.g. `order.due`; empty if the schema library does not say. */
  readonly path: string
  readonly type: string
  /** The error of the schema library, if it has refused to describe the schema. */
  readonly cause?: unknown
}

/**
 * Finds a part of a schema whose value is known not to be JSON: a Date, a bigint, a Map. Zod's own description is
 * walked, because its errors do not name the part; ArkType and Valibot name the type when they refuse to describe
 * what the schema makes. Undefined also where nothing is known, e.g. after a transform: the value itself is checked
 * with each call.
 */
export function findNonJsonPart(schema: {
  readonly '~standard': {
    readonly jsonSchema?: {
      readonly output: (options: { readonly target: 'draft-07' }) => unknown
    }
  }
}): NonJsonPart | undefined {
  const nonJson = inZod(schema, '', new Set())
  if (nonJson) return nonJson
  try {
    schema['~standard'].jsonSchema?.output({ target: 'draft-07' })
  } catch (cause) {
    const type = refusedType(cause)
    if (type !== undefined) return { path: '', type, cause }
  }
  return undefined
}

const NON_JSON: ReadonlySet<unknown> = new Set([
  'date',
  'bigint',
  'symbol',
  'map',
  'set',
  'nan',
  'function',
  'promise',
  'file',
  'blob',
  'instance',
])

/** The members of a Zod schema that say what it is made of (`zod/v4/core`, for authors of libraries). */
interface ZodDefinition {
  readonly type?: unknown
  readonly shape?: Readonly<Record<string, unknown>>
  readonly element?: unknown
  readonly innerType?: unknown
  readonly options?: readonly unknown[]
  readonly items?: readonly unknown[]
  readonly rest?: unknown
  readonly left?: unknown
  readonly right?: unknown
  readonly valueType?: unknown
  readonly out?: unknown
  readonly getter?: () => unknown
}

/** Walks what a Zod schema makes; of a pipe, that is its end. */
function inZod(schema: unknown, path: string, seen: Set<unknown>): NonJsonPart | undefined {
  const { _zod } = (schema ?? {}) as { readonly _zod?: { readonly def?: ZodDefinition } }
  const { def } = _zod ?? {}
  if (!def || seen.has(schema)) return undefined
  seen.add(schema)
  if (typeof def.type === 'string' && NON_JSON.has(def.type)) return { path, type: def.type }
  const inside = (name: string): string => (path === '' ? name : `${path}.${name}`)
  const parts: (readonly [unknown, string])[] = [
    ...Object.entries(def.shape ?? {}).map(([name, part]) => [part, inside(name)] as const),
    ...(def.options ?? []).map((part) => [part, path] as const),
    ...(def.items ?? []).map((part, index) => [part, `${path}[${index}]`] as const),
    [def.element, `${path}[]`],
    [def.rest, `${path}[]`],
    [def.valueType, inside('*')],
    ...[def.innerType, def.left, def.right, def.out].map((part) => [part, path] as const),
    ...(def.type === 'lazy' ? [[def.getter?.(), path] as const] : []),
  ]
  for (const [part, place] of parts) {
    const nonJson = part === undefined ? undefined : inZod(part, place, seen)
    if (nonJson) return nonJson
  }
  return undefined
}

/** Returns the type that ArkType or Valibot has refused to describe, if JSON has no such type. */
function refusedType(error: unknown): string | undefined {
  const { code, message } = (error ?? {}) as {
    readonly code?: unknown
    readonly message?: unknown
  }
  if (code === 'date') return 'date'
  // ArkType: `proto: Function(Map)`, `domain: "bigint"`; Valibot: `The "date" schema cannot be converted …`
  const text = String(message)
  if (code === 'proto') return /proto: Function\((\w+)\)/.exec(text)?.[1]
  const schemaName = (code === 'domain' ? /domain: "(\w+)"/ : /^The "(\w+)" schema cannot/).exec(
    text,
  )?.[1]
  return schemaName !== undefined && NON_JSON.has(schemaName) ? schemaName : undefined
}
