import {
  type ArgumentParser,
  canonicalJson,
  isSameJson,
  freezeTree,
  isParsedBy,
  isPlainObject,
  type JsonObject,
  type JsonSchema,
  type JsonValue,
  messageOf,
  sha256Hex,
  SkeinError,
  type StandardIssue,
  type StandardJSONSchemaV1,
  type StandardSchemaV1,
  toJsonSchema,
} from '@skein/base'
import { findNonJsonPart } from './non-json-part.ts'

/** A schema that can validate and convert itself to JSON Schema: Zod 4, ArkType, Valibot with its adapter. */
export type ToolSchema<Args, Input = unknown> = StandardSchemaV1<Input, Args> &
  StandardJSONSchemaV1<Input, Args>

/** What a schema makes of the arguments of a tool. */
export interface SchemaArguments<Args> {
  /** The JSON Schema of what the model sends. */
  readonly parameters: JsonSchema
  readonly parser: ArgumentParser
  /**
   * Returns arguments as the tool's code gets them: a value that `parser` has made as it is, any other value parsed.
   * `context` is that of the call; it says whether the arguments of the call were parsed already.
   */
  readonly read: (params: unknown, context: unknown) => Promise<Args>
}

/** Options of `schemaArguments`. */
export interface SchemaArgumentsOptions {
  /** `json` allows text, numbers and lists too, for scheduled work whose arguments are no call of a model. */
  readonly accepts?: 'object' | 'json'
}

/**
 * Creates the parse phase of a tool. Throws for a schema that cannot be written as JSON Schema, or whose value is known
 * not to be JSON: a person, a log and a digest could not hold such arguments.
 */
export function schemaArguments<Args>(
  toolName: string,
  schema: ToolSchema<Args>,
  { accepts = 'object' }: SchemaArgumentsOptions = {},
): SchemaArguments<Args> {
  if (accepts === 'object') refuseNonJson(schema)
  const parameters = toJsonSchema(schema)
  const made = new WeakSet<object>()
  let hash: string | undefined
  const parser: ArgumentParser = {
    get schema() {
      return (hash ??= hashOf(schema, parameters)) // computed when a log needs it
    },
    async parse(params) {
      const answer = await schema['~standard'].validate(mutableCopy(params))
      if (answer.issues) throw new ToolArgumentError(toolName, answer.issues)
      const value = argumentsJson(toolName, answer.value, accepts)
      if (typeof value === 'object') made.add(value)
      return value
    },
    restore(parsed) {
      const value = freezeTree(parsed)
      made.add(value)
      return value
    },
  }
  const readJson = async (params: unknown, context: unknown): Promise<unknown> => {
    if (typeof params === 'object' && params !== null && made.has(params)) return params
    const value = await parser.parse(params)
    if (isParsedBy(context, parser) && !isSameJson(value, params)) throw changed(toolName)
    return value
  }
  // The value is the JSON of what the schema makes.
  const read = (params: unknown, context: unknown) => readJson(params, context) as Promise<Args>
  return { parameters, parser, read }
}

/**
 * Copies lists and plain objects. A schema may write into what it validates (ArkType does, for its morphs), and the
 * arguments are part of a message, which must not change and may be frozen.
 */
function mutableCopy(value: unknown, depth = 0): unknown {
  if (depth > MAX_DEPTH) return value
  if (Array.isArray(value)) return value.map((item) => mutableCopy(item, depth + 1))
  if (!isPlainObject(value)) return value
  const copy: Record<string, unknown> = {}
  for (const key of Object.keys(value)) {
    const item = mutableCopy(value[key], depth + 1)
    if (key === '__proto__') Object.defineProperty(copy, key, { value: item, enumerable: true })
    else copy[key] = item
  }
  return copy
}

/** Arguments of a model are less deep than this; only a direct call of `run` can pass others. */
const MAX_DEPTH = 1000

function changed(toolName: string): SkeinError {
  return new SkeinError(
    `The arguments of "${toolName}" were changed after they were parsed, and parsing them again would change them a second time. The tool did not run.`,
    {
      code: 'TOOL_ARGUMENTS_CHANGED',
      hint: 'A wrapper passes the arguments on as it gets them. Change them in onBeforeCall, or make the wrapper with tool().',
    },
  )
}

function refuseNonJson(schema: ToolSchema<unknown>): void {
  const part = findNonJsonPart(schema)
  const where = part?.path ? `${part.path} is` : 'it holds'
  if (part)
    throw new SkeinError(`${where} a ${part.type}, which JSON cannot represent.`, {
      code: 'SCHEMA_NOT_CONVERTIBLE',
      hint: 'Let the schema check text or a number, and convert it inside the tool.',
      cause: part.cause,
    })
}

/**
 * Hashes what a schema says about itself. The code of a transform cannot be hashed: after a change of that code alone,
 * a value that was approved before still runs as it was approved.
 */
function hashOf(schema: ToolSchema<unknown>, parameters: JsonSchema): string {
  const { expression } = schema as { readonly expression?: unknown } // ArkType: its JSON Schema lacks the defaults
  const again = toJsonSchema(schema)
  const isStable = canonicalJson(parameters) === canonicalJson(again)
  // A default that is computed, e.g. a random id, is another one each time.
  const input = isStable ? parameters : withoutDefaults(parameters as JsonValue)
  const expressionText = typeof expression === 'string' ? expression : null
  return sha256Hex(canonicalJson([input as JsonValue, outputOf(schema), expressionText]))
}

function outputOf(schema: ToolSchema<unknown>): JsonValue {
  try {
    return withoutDefaults({
      ...schema['~standard'].jsonSchema.output({ target: 'draft-07' }),
    } as JsonObject)
  } catch {
    return null // the schema has a transform, whose result has no type
  }
}

function withoutDefaults(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(withoutDefaults)
  if (!isPlainObject(value)) return value
  const entries = Object.entries(value).filter(([key]) => key !== 'default')
  return Object.fromEntries(entries.map(([key, own]) => [key, withoutDefaults(own as JsonValue)]))
}

/**
 * Thrown when the model's arguments do not match the tool's schema.
 * The model sees every issue and can try again.
 */
export class ToolArgumentError extends SkeinError {
  readonly issues: readonly StandardIssue[]

  constructor(toolName: string, issues: readonly StandardIssue[]) {
    const lines = issues.map(({ path = [], message }) => {
      const keys = path.map((step) => String(typeof step === 'object' ? step.key : step))
      return keys.length > 0 ? `${keys.join('.')}: ${message}` : message
    })
    super(`The arguments of "${toolName}" are invalid: ${lines.join('; ')}.`, {
      code: 'TOOL_ARGUMENTS_INVALID',
    })
    this.issues = issues
  }
}

/**
 * Returns a frozen copy of parsed arguments. Only JSON is accepted: a Date or a Map would be one value in the tool and
 * another in the log, for the approver and in the digest.
 */
function argumentsJson(toolName: string, value: unknown, accepts: 'object' | 'json'): JsonObject {
  const refuse = (path: string, what: string): never => {
    const place = path === '' ? 'they are' : `${path} is`
    throw new SkeinError(
      `The schema of "${toolName}" makes arguments that are not JSON: ${place} ${what}. The tool did not run.`,
      {
        code: 'TOOL_ARGUMENTS_NOT_JSON',
        hint: 'Let the schema make plain JSON, and convert it inside the tool.',
      },
    )
  }
  if (accepts === 'object' && !isPlainObject(value)) refuse('', describe(value))
  const above = new Set<object>()
  const copy = (item: unknown, path: string): JsonValue => {
    if (item === null || typeof item === 'string' || typeof item === 'boolean') return item
    if (typeof item === 'number') return Number.isFinite(item) ? item || 0 : refuse(path, `${item}`)
    if (typeof item !== 'object') return refuse(path, describe(item))
    if (above.has(item)) return refuse(path, 'part of itself')
    above.add(item)
    let json: JsonValue
    if (Array.isArray(item)) json = item.map((one, index) => copy(one, `${path}[${index}]`))
    else if (isPlainObject(item)) json = copyFields(item, path, copy)
    else return refuse(path, describe(item))
    above.delete(item)
    return json
  }
  try {
    return freezeTree(copy(value, '')) as JsonObject // or other JSON, where that is accepted
  } catch (error) {
    if (error instanceof SkeinError) throw error
    return refuse('', `unreadable (${messageOf(error)})`) // a getter or a proxy threw, or the value is too deep
  }
}

function copyFields(
  source: Record<string, unknown>,
  path: string,
  copy: (item: unknown, path: string) => JsonValue,
): JsonObject {
  const fields: Record<string, JsonValue> = {}
  for (const [key, item] of Object.entries(source)) {
    if (item === undefined) continue // JSON has no such member, and a schema library may leave one
    const value = copy(item, path === '' ? key : `${path}.${key}`)
    // An assignment to a key named `__proto__` would set the prototype.
    Object.defineProperty(fields, key, {
      value,
      enumerable: true,
      writable: true,
      configurable: true,
    })
  }
  return fields
}

function describe(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'an array'
  if (typeof value !== 'object') return `a ${typeof value}`
  return `a ${Object.prototype.toString.call(value) === '[object Object]' ? (value.constructor?.name ?? 'object') : Object.prototype.toString.call(value).slice(8, -1)}`
}
