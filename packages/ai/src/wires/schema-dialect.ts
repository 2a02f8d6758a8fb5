import { isPlainObject, type JsonSchema } from '@skein/base'
import type { Warning } from '../contract/turn.ts'

/** How far a vendor departs from JSON Schema. Nothing is changed that is not named here. */
export interface SchemaDialect {
  /** The root must be an object: other roots are wrapped as `{ value: … }`. */
  readonly objectRoot?: boolean
  /** Keywords the vendor rejects; removed, with a warning for each place. */
  readonly rejected?: ReadonlySet<string>
  /** Objects must say `additionalProperties: false`; added where missing, with a warning. */
  readonly closedObjects?: boolean
  /** The conditions of a strict mode: reported as `isStrict`, never forced. */
  readonly strict?: (schema: JsonSchema) => boolean
}

/** A schema as a vendor takes it. */
export interface DialectSchema {
  readonly schema: JsonSchema
  readonly warnings: Warning[]
  /** The answer arrives as `{ value: … }`; see `ValueUnwrapper`. */
  readonly isWrapped: boolean
  /** The schema meets the dialect's strict mode as it stands. */
  readonly isStrict: boolean
}

/** Fits a schema to a vendor. The whole schema is kept: `$defs`, unions, descriptions, unknown keywords. */
export function toDialect(schema: JsonSchema, dialect: SchemaDialect): DialectSchema {
  const warnings: Warning[] = []
  const fitted =
    dialect.rejected || dialect.closedObjects ? fit(schema, dialect, warnings, '') : schema
  const isWrapped = dialect.objectRoot === true && !hasObjectRoot(fitted)
  const result = isWrapped ? wrapRoot(fitted) : fitted
  return {
    schema: result,
    warnings,
    isWrapped,
    isStrict: dialect.strict?.(result) === true,
  }
}

/** An untyped root without a union is taken for an object, as every vendor takes it. */
function hasObjectRoot(schema: JsonSchema): boolean {
  if (schema['type'] !== undefined) return schema['type'] === 'object'
  return !['anyOf', 'oneOf', 'enum', 'const', '$ref', 'items'].some((key) => key in schema)
}

function wrapRoot(schema: JsonSchema): JsonSchema {
  const { $defs, definitions, $schema, ...value } = moveRefs(schema) as JsonSchema
  return {
    ...($schema !== undefined && { $schema }),
    type: 'object',
    properties: { value },
    required: ['value'],
    additionalProperties: false,
    ...($defs !== undefined && { $defs }),
    ...(definitions !== undefined && { definitions }),
  }
}

/** Pointers into the root follow it into its wrapper; `$defs` stay at the root. */
function moveRefs(node: unknown): unknown {
  if (Array.isArray(node)) return node.map(moveRefs)
  if (!isPlainObject(node)) return node
  return Object.fromEntries(
    Object.entries(node).map(([key, value]) => {
      const isPointer = key === '$ref' && typeof value === 'string' && value.startsWith('#')
      if (!isPointer) return [key, moveRefs(value)]
      const isShared = value.startsWith('#/$defs/') || value.startsWith('#/definitions/')
      return [key, isShared ? value : `#/properties/value${value.slice(1)}`]
    }),
  )
}

/** Keywords whose value maps names to schemas, is one schema, or is a list of schemas. */
const mapKeywords = new Set([
  'properties',
  'patternProperties',
  '$defs',
  'definitions',
  'dependentSchemas',
])
const schemaKeywords = new Set([
  'items',
  'additionalProperties',
  'additionalItems',
  'unevaluatedItems',
  'unevaluatedProperties',
  'contains',
  'propertyNames',
  'not',
  'if',
  'then',
  'else',
  'anyOf',
  'allOf',
  'oneOf',
  'prefixItems',
])

function fit(
  schema: JsonSchema,
  dialect: SchemaDialect,
  warnings: Warning[],
  pointer: string,
): JsonSchema {
  const result: Record<string, unknown> = {}
  for (const [keyword, value] of Object.entries(schema)) {
    const here = `${pointer}/${keyword.replaceAll('~', '~0').replaceAll('/', '~1')}`
    if (dialect.rejected?.has(keyword)) warnings.push(dropped(keyword, here))
    else result[keyword] = fitValue(keyword, value, dialect, warnings, here)
  }
  const isOpen = schema['type'] === 'object' && schema['additionalProperties'] === undefined
  if (dialect.closedObjects && isOpen) {
    result['additionalProperties'] = false
    warnings.push({
      code: 'schema_changed',
      message: 'The vendor takes only closed objects: additionalProperties: false was added.',
      pointer,
    })
  }
  return result
}

function fitValue(
  keyword: string,
  value: unknown,
  dialect: SchemaDialect,
  warnings: Warning[],
  pointer: string,
): unknown {
  const fitOne = (item: unknown, at: string): unknown =>
    isPlainObject(item) ? fit(item, dialect, warnings, at) : item
  if (mapKeywords.has(keyword) && isPlainObject(value)) {
    return Object.fromEntries(
      Object.entries(value).map(([name, item]) => [name, fitOne(item, `${pointer}/${name}`)]),
    )
  }
  if (!schemaKeywords.has(keyword)) return value
  if (Array.isArray(value)) return value.map((item, i) => fitOne(item, `${pointer}/${i}`))
  return fitOne(value, pointer)
}

function dropped(keyword: string, pointer: string): Warning {
  return {
    code: 'schema_changed',
    message: `The vendor does not take the keyword "${keyword}"; it was left out.`,
    pointer,
  }
}
