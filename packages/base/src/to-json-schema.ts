import { SkeinError } from './error.ts'
import { isPlainObject, type JsonSchema } from './json.ts'
import {
  standardProps,
  type JsonSchemaTarget,
  type StandardJSONSchemaV1,
} from './standard-schema.ts'

/** The JSON Schema of what a schema accepts. A plain object is taken to be JSON Schema already. */
export function toJsonSchema(
  schema: unknown,
  { target = 'draft-07' }: { target?: JsonSchemaTarget | undefined } = {},
): JsonSchema {
  const props = standardProps(schema)
  if (describesItself(props)) return convert(props, target)
  if (props) throw notDescribed(props)
  if (isPlainObject(schema)) return rawSchema(schema)
  throw new SkeinError(
    `Expected a schema but got ${schema === null ? 'null' : `a ${typeof schema}`}.`,
    {
      code: 'SCHEMA_INVALID',
      hint: 'Pass a Zod 4, ArkType or Valibot schema, or a JSON Schema object.',
    },
  )
}

type DescribingProps = StandardJSONSchemaV1['~standard']

function describesItself(props: object | undefined): props is DescribingProps {
  const converter = (props as Partial<DescribingProps> | undefined)?.jsonSchema
  return typeof converter?.input === 'function'
}

function convert(props: DescribingProps, target: JsonSchemaTarget): JsonSchema {
  try {
    // A copy: Zod's answer says of itself that it is a schema, and would be converted again and again.
    return { ...props.jsonSchema.input({ target }) }
  } catch (cause) {
    throw new SkeinError(`The ${props.vendor} schema cannot be written as JSON Schema ${target}.`, {
      code: 'SCHEMA_NOT_CONVERTIBLE',
      hint: 'Use only types that JSON has, or pass a JSON Schema object; the cause names the part.',
      cause,
    })
  }
}

/** `{ city: z.string() }` is a common slip; as JSON Schema it would accept anything. */
function rawSchema(schema: Record<string, unknown>): JsonSchema {
  const shape = Object.keys(schema).find((key) => standardProps(schema[key]))
  if (shape === undefined) return schema
  throw new SkeinError(`"${shape}" holds a schema, but the object around it is not one.`, {
    code: 'SCHEMA_INVALID',
    hint: 'Wrap the fields, for example z.object({ … }).',
  })
}

function notDescribed(props: Record<string, unknown>): SkeinError {
  return new SkeinError(
    `The ${String(props['vendor'])} schema cannot describe itself as JSON Schema.`,
    {
      code: 'SCHEMA_NOT_CONVERTIBLE',
      hint:
        'Use Zod 4.2 or later, ArkType 2.1.28 or later, or wrap a Valibot schema in ' +
        'toStandardJsonSchema() of @valibot/to-json-schema.',
    },
  )
}
