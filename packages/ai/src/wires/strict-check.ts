import { isPlainObject, type JsonObject, type JsonSchema } from '@skein/base'
import { pointerSegment } from '../contract/structure.ts'
import { objectOf } from './read-json.ts'
import { requiredNames } from './strict-nulls.ts'
import {
  isSupportedLimit,
  knownKeywords,
  shapes,
  sizeProblems,
  type StrictProblem,
} from './strict-schema.ts'
import { requestError } from './wire-error.ts'

/** Checks whether OpenAI's strict mode accepts the schema unchanged. */
export function isStrictSchema(schema: JsonSchema): boolean {
  return strictProblems(schema).length === 0
}

/**
 * Returns what OpenAI's strict mode refuses in a schema: a root that is not an object, objects that are open or
 * have optional properties, keywords and formats that it does not support, and schemas that are too large.
 */
export function strictProblems(schema: JsonSchema): readonly StrictProblem[] {
  const problems: StrictProblem[] = []
  const find = (pointer: string, message: string): void => void problems.push({ pointer, message })
  if (schema['type'] !== 'object' || 'anyOf' in schema) find('', 'The root must be an object.')
  findProblems(schema, '', find)
  return [...problems, ...sizeProblems(schema)]
}

/** Throws for a schema with `strict: true` that the API itself would refuse; the error names `field`. */
export function refuseLoose(schema: JsonSchema, field: string): void {
  const [problem] = strictProblems(schema)
  if (!problem) return
  throw requestError(
    'openai',
    `Invalid schema for "${field}": at ${problem.pointer || 'the root'}: ${problem.message}`,
    'With "strict": true every object must be closed and every property required.',
  )
}

/** Reads the schema of a client's `json_schema` format, and refuses what the API refuses. */
export function readFormat(format: JsonObject | undefined, field: string): JsonObject | undefined {
  if (!format) return undefined
  const { name, schema, strict } = format
  if (typeof name !== 'string' || !/^[a-zA-Z0-9_-]{1,64}$/.test(name)) {
    throw requestError(
      'openai',
      `The field "${field}.name" is missing, or is not 1 to 64 letters, digits, "_" and "-".`,
    )
  }
  const structure = objectOf(schema)
  if (strict === true && structure) refuseLoose(structure, `${field}.schema`)
  return structure
}

function findProblems(
  schema: unknown,
  pointer: string,
  find: (pointer: string, message: string) => void,
): void {
  if (!isPlainObject(schema)) return find(pointer, 'A schema must be an object.')
  for (const [keyword, value] of Object.entries(schema)) {
    const at = pointer + pointerSegment(keyword)
    if (!knownKeywords.has(keyword)) find(at, `The keyword "${keyword}" is not supported.`)
    else if (!isSupportedLimit(keyword, value))
      find(at, `${JSON.stringify(value)} is not a supported ${keyword}.`)
  }
  const { type, properties, items, anyOf, $ref, $defs, definitions } = schema
  if (!shapes.some((keyword) => keyword in schema)) find(pointer, 'A schema must have a type.')
  const others = Object.keys(schema).filter(
    (keyword) => !['$ref', '$defs', 'definitions'].includes(keyword),
  )
  if ($ref !== undefined && others.length > 0)
    find(`${pointer}/$ref`, `"$ref" cannot have other keywords next to it: ${others.join(', ')}.`)
  if ([type].flat().includes('object') || properties !== undefined) {
    const names = isPlainObject(properties) ? Object.keys(properties) : []
    const requiredSet = requiredNames(schema)
    const optional = names.find((name) => !requiredSet.has(name))
    if (schema['additionalProperties'] !== false)
      find(pointer, '"additionalProperties" is required to be supplied and to be false.')
    if (optional !== undefined)
      find(
        pointer,
        `"required" is required to be supplied and to be a list with every property. Missing: "${optional}".`,
      )
  }
  if (type === 'array' || items !== undefined) findProblems(items, `${pointer}/items`, find)
  if (anyOf !== undefined && !Array.isArray(anyOf))
    find(`${pointer}/anyOf`, '"anyOf" must be a list.')
  for (const [name, parts] of Object.entries({ properties, anyOf, $defs, definitions })) {
    if (parts === undefined || typeof parts !== 'object' || parts === null) continue
    for (const [key, part] of Object.entries(parts))
      findProblems(part, `${pointer}/${name}${pointerSegment(key)}`, find)
  }
}
