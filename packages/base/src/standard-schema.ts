import { SkeinError } from './error.ts'
import { isPlainObject, type JsonSchema } from './json.ts'

/** The properties that every Standard Schema has (standardschema.dev, version 1). */
export interface StandardTypedProps<Input = unknown, Output = Input> {
  readonly version: 1
  readonly vendor: string
  readonly types?: { readonly input: Input; readonly output: Output } | undefined
}

/** A schema that can validate: Zod, Valibot, ArkType and others. */
export interface StandardSchemaV1<Input = unknown, Output = Input> {
  readonly '~standard': StandardTypedProps<Input, Output> & {
    readonly validate: (value: unknown) => StandardResult<Output> | Promise<StandardResult<Output>>
  }
}

/** A schema that can describe itself as JSON Schema. */
export interface StandardJSONSchemaV1<Input = unknown, Output = Input> {
  readonly '~standard': StandardTypedProps<Input, Output> & {
    readonly jsonSchema: {
      readonly input: (options: { readonly target: JsonSchemaTarget }) => Record<string, unknown>
      readonly output: (options: { readonly target: JsonSchemaTarget }) => Record<string, unknown>
    }
  }
}

/**
 * The JSON Schema dialect to write. Most schema libraries support the two drafts, only some support other
 * dialects.
 */
export type JsonSchemaTarget = 'draft-2020-12' | 'draft-07' | 'openapi-3.0' | ({} & string)

/** The result of a validation: the value, or the issues. */
export type StandardResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly StandardIssue[] }

/** One problem of a value, and where it is. */
export interface StandardIssue {
  readonly message: string
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined
}

/** The type of the values that a schema accepts. */
export type InferInput<S extends { readonly '~standard': StandardTypedProps }> = NonNullable<
  S['~standard']['types']
>['input']

/** The type of the values that a schema returns after validation. */
export type InferOutput<S extends { readonly '~standard': StandardTypedProps }> = NonNullable<
  S['~standard']['types']
>['output']

/**
 * True for a schema that can validate. Functions are accepted too, because some libraries' schemas are
 * functions.
 */
export function isStandardSchema(value: unknown): value is StandardSchemaV1 {
  return typeof standardProps(value)?.['validate'] === 'function'
}

/** Returns the `~standard` member of a schema object or function, if it has one. */
function standardProps(value: unknown): Record<string, unknown> | undefined {
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return undefined
  const props: unknown = (value as { '~standard'?: unknown })['~standard']
  return typeof props === 'object' && props !== null
    ? (props as Record<string, unknown>)
    : undefined
}

/**
 * Returns a JSON Schema for the values that a schema accepts. A plain object is returned unchanged, because
 * it is taken to be a JSON Schema.
 */
export function toJsonSchema(
  schema: unknown,
  { target = 'draft-07' }: { target?: JsonSchemaTarget | undefined } = {},
): JsonSchema {
  const props = standardProps(schema) as Partial<StandardJSONSchemaV1['~standard']> | undefined
  if (typeof props?.jsonSchema?.input === 'function') {
    try {
      // The result is copied without its non-enumerable properties: Zod marks it as a schema, so another call
      // of `toJsonSchema` would convert it again.
      return { ...props.jsonSchema.input({ target }) }
    } catch (cause) {
      throw new SkeinError(
        `The ${props.vendor} schema cannot be written as JSON Schema ${target}.`,
        {
          code: 'SCHEMA_NOT_CONVERTIBLE',
          hint: 'Use only types that JSON has, or pass a JSON Schema object; the cause names the part.',
          cause,
        },
      )
    }
  }
  if (props) {
    throw new SkeinError(`The ${props.vendor} schema cannot describe itself as JSON Schema.`, {
      code: 'SCHEMA_NOT_CONVERTIBLE',
      hint:
        'Use Zod 4.2 or later, ArkType 2.1.28 or later, or wrap a Valibot schema in ' +
        'toStandardJsonSchema() of @valibot/to-json-schema.',
    })
  }
  if (!isPlainObject(schema)) {
    const kind = schema === null ? 'null' : `a ${typeof schema}`
    throw new SkeinError(`Expected a schema but got ${kind}.`, {
      code: 'SCHEMA_INVALID',
      hint: 'Pass a Zod 4, ArkType or Valibot schema, or a JSON Schema object.',
    })
  }
  // `{ city: z.string() }` is a common mistake; read as JSON Schema it would accept anything.
  const field = Object.keys(schema).find((key) => standardProps(schema[key]))
  if (field === undefined) return schema
  throw new SkeinError(`"${field}" holds a schema, but the object around it is not one.`, {
    code: 'SCHEMA_INVALID',
    hint: 'Wrap the fields, for example z.object({ … }).',
  })
}
