import { isDateTime, isUuid } from './formats.ts'
import type { ContractSchema, JsonType } from './schema/contract-schema.ts'

/** One thing that is wrong with an object, and where. */
export interface Issue {
  /** JSON pointer, empty for the object itself. */
  readonly path: string
  readonly rule: string
  readonly message: string
}

/** Judges as a 2020-12 validator that asserts formats. Finds all issues, not only the first. */
export function findSchemaIssues(schema: ContractSchema, value: unknown, path = ''): Issue[] {
  const types = [schema.type].flat() as readonly JsonType[]
  if (!types.some((type) => isOfType(type, value))) {
    return [{ path, rule: 'type', message: `must be ${types.join(' or ')}` }]
  }
  if (typeof value === 'string') return findStringIssues(schema, value, path)
  if (Array.isArray(value)) {
    return schema.items ? findItemIssues(schema.items, value, path) : []
  }
  // The type was checked: what is an object and no array has named members.
  return typeof value === 'object' && value !== null
    ? findMemberIssues(schema, value as Record<string, unknown>, path)
    : []
}

function findItemIssues(schema: ContractSchema, items: readonly unknown[], path: string): Issue[] {
  const issues: Issue[] = []
  // By index: the methods of an array from outside may not be what they seem.
  for (let i = 0; i < items.length; i++) {
    issues.push(...findSchemaIssues(schema, items[i], `${path}/${i}`))
  }
  return issues
}

function findMemberIssues(
  { required = [], properties = {}, additionalProperties }: ContractSchema,
  value: Record<string, unknown>,
  path: string,
): Issue[] {
  const issues: Issue[] = required
    .filter((key) => value[key] === undefined)
    .map((key) => ({ path: `${path}/${key}`, rule: 'required', message: 'is missing' }))
  for (const key of Object.keys(value)) {
    const schema = Object.hasOwn(properties, key) ? properties[key] : undefined
    const at = `${path}/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`
    if (!schema) {
      if (additionalProperties !== false) continue
      issues.push({ path: at, rule: 'additionalProperties', message: 'is not a known member' })
    } else if (value[key] !== undefined) {
      issues.push(...findSchemaIssues(schema, value[key], at))
    }
  }
  return issues
}

function findStringIssues(schema: ContractSchema, text: string, path: string): Issue[] {
  const issues: Issue[] = []
  if (schema.minLength && text === '') {
    issues.push({ path, rule: 'minLength', message: 'must not be empty' })
  }
  if (schema.enum && !schema.enum.includes(text)) {
    issues.push({ path, rule: 'enum', message: `must be one of ${schema.enum.join(', ')}` })
  }
  const isOfFormat = schema.format === 'uuid' ? isUuid : isDateTime
  if (schema.format && !isOfFormat(text)) {
    issues.push({ path, rule: 'format', message: `must be a ${schema.format}` })
  }
  return issues
}

function isOfType(type: JsonType, value: unknown): boolean {
  switch (type) {
    case 'null':
      return value === null
    case 'array':
      return Array.isArray(value)
    case 'object':
      return typeof value === 'object' && value !== null && !Array.isArray(value)
    case 'integer':
      return Number.isInteger(value)
    case 'number':
      return Number.isFinite(value)
    default:
      return typeof value === type
  }
}
