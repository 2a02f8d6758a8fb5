import { isPlainObject, type JsonSchema } from '@skein/base'

/** What OpenAI's strict mode documents as supported. Anything else makes a schema not strict. */
const known = new Set([
  '$schema',
  '$id',
  '$ref',
  '$defs',
  'definitions',
  'title',
  'description',
  'type',
  'enum',
  'const',
  'properties',
  'required',
  'additionalProperties',
  'items',
  'anyOf',
  'pattern',
  'format',
  'multipleOf',
  'minimum',
  'maximum',
  'exclusiveMinimum',
  'exclusiveMaximum',
  'minItems',
  'maxItems',
])

/** One of these must say what a value is. */
const shapes = ['type', 'anyOf', '$ref', 'enum', 'const']

/**
 * True when OpenAI's strict mode takes the schema as it is: an object at the root, every object
 * closed with all its properties required, and no keyword outside the supported set.
 */
export function isStrictSchema(schema: JsonSchema): boolean {
  return schema['type'] === 'object' && !('anyOf' in schema) && isStrictPart(schema)
}

function isStrictPart(schema: unknown): boolean {
  if (!isPlainObject(schema)) return false
  if (Object.keys(schema).some((keyword) => !known.has(keyword))) return false
  const { type, properties, items, anyOf, $defs, definitions } = schema
  const isObject = type === 'object' || (Array.isArray(type) && type.includes('object'))
  if ((isObject || properties !== undefined) && !isClosed(schema)) return false
  if (!shapes.some((keyword) => keyword in schema)) return false
  if ((type === 'array' || items !== undefined) && !isStrictPart(items)) return false
  if (anyOf !== undefined && !(Array.isArray(anyOf) && anyOf.every(isStrictPart))) return false
  return [properties, $defs, definitions].every(
    (parts) =>
      parts === undefined || (isPlainObject(parts) && Object.values(parts).every(isStrictPart)),
  )
}

function isClosed({ properties, required, additionalProperties }: JsonSchema): boolean {
  if (additionalProperties !== false) return false
  const names = isPlainObject(properties) ? Object.keys(properties) : []
  const requiredNames = new Set(Array.isArray(required) ? required : [])
  return names.every((name) => requiredNames.has(name))
}
