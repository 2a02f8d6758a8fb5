import type { JsonSchema } from '@skein/base'
import { resolveRef } from '../contract/structure.ts'
import type { Warning } from '../contract/turn.ts'
import type { StrictProblem, StrictSchema } from './strict-schema.ts'

/** A vendor's restrictions of JSON Schema. A schema is changed only as listed here. */
export interface SchemaDialect {
  /** The root must be an object; other roots are wrapped as `{ value: … }`. */
  readonly objectRoot?: boolean
  /**
   * Rewrites a schema for the vendor's strict mode. If that would change more of its meaning than limits such
   * as `minLength`, the schema is sent as it is, with a warning for each place.
   */
  readonly strict?: (schema: JsonSchema) => StrictSchema
}

/** A schema adapted to a vendor. */
interface DialectSchema {
  readonly schema: JsonSchema
  readonly warnings: Warning[]
  /** True if the answer will arrive as `{ value: … }`; see `unwrapValue`. */
  readonly isWrapped: boolean
  /** True if the schema can be sent in the vendor's strict mode, in which answers are guaranteed to fit it. */
  readonly isStrict: boolean
}

/**
 * Adapts a schema to a vendor. Everything allowed is kept: `$defs`, unions, descriptions, unknown
 * keywords.
 */
export function toDialect(schema: JsonSchema, dialect: SchemaDialect): DialectSchema {
  const warnings: Warning[] = []
  if (dialect.strict) {
    const { schema: strict, isWrapped, problems, dropped } = dialect.strict(schema)
    const warn = (code: string, found: readonly StrictProblem[]): Warning[] =>
      found.map(({ pointer, message }) => ({ code, message, pointer: `/structure${pointer}` }))
    if (problems.length === 0) {
      return {
        schema: strict,
        warnings: warn('schema_changed', dropped),
        isWrapped,
        isStrict: true,
      }
    }
    warnings.push(...warn('schema_not_strict', problems))
  }
  const isWrapped = dialect.objectRoot === true && !hasObjectRoot(schema)
  const result = isWrapped ? wrapRoot(schema) : schema
  return { schema: result, warnings, isWrapped, isStrict: false }
}

/**
 * Checks whether the root is an object. A root without `type` is treated as an object, as all vendors do,
 * unless it has a keyword such as `anyOf`, `enum` or `$ref`.
 */
function hasObjectRoot(schema: JsonSchema): boolean {
  if (schema['type'] !== undefined) return schema['type'] === 'object'
  return !['anyOf', 'oneOf', 'enum', 'const', '$ref', 'items'].some((key) => key in schema)
}

/**
 * Wraps the root as the property `value` of an object. References to the root and into it are adjusted;
 * `$defs` stay at the root, and so do references to them.
 */
function wrapRoot(schema: JsonSchema): JsonSchema {
  const text = JSON.stringify(schema)
  const rewrittenText = text.replace(
    /("\$ref":"#)(?!\/(?:\$defs|definitions)\/)/g,
    '$1/properties/value',
  )
  return wrapValue(JSON.parse(rewrittenText) as JsonSchema)
}

/** Returns the schema of an object whose only property is `value`; shared definitions stay at the root. */
export function wrapValue({ $defs, definitions, $schema, ...value }: JsonSchema): JsonSchema {
  return {
    $schema,
    type: 'object',
    properties: { value },
    required: ['value'],
    additionalProperties: false,
    $defs,
    definitions,
  }
}

/** Checks whether a `$ref` leads back to itself. */
export function isRecursive(
  root: JsonSchema,
  ref: unknown,
  seen: Set<unknown> = new Set(),
): boolean {
  if (seen.has(ref)) return false
  seen.add(ref)
  const text = JSON.stringify(resolveRef(root, ref)) ?? ''
  const inside = [...text.matchAll(/"\$ref":"([^"]*)"/g)].map(([, inner]) => inner)
  const [start] = seen
  return inside.some((one) => one === start || isRecursive(root, one, seen))
}

/** Returns the prompt text that asks for JSON of this schema, for vendors whose API accepts no schema. */
export function schemaInstruction(schema: JsonSchema, what: 'object' | 'value'): string {
  return `Answer with one JSON ${what} that matches this JSON Schema, and nothing else:\n${JSON.stringify(schema)}`
}
