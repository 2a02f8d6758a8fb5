import { isStandardSchema, SkeinError, toJsonSchema, type JsonSchema } from '@skein/base'
import { ToolArgumentError, type ToolSchema } from '@skein/ai'
import { DefinitionError } from './resolved.ts'

/** The arguments of something callable: how models are told of them, and how they are checked. */
export interface CheckedArguments<Args> {
  readonly parameters: JsonSchema
  readonly check: (params: unknown) => Promise<Args>
  /** For callbacks that must answer at once; undefined when the arguments are invalid. */
  readonly checkNow: (params: unknown) => { readonly value: Args } | undefined
}

/** Without a schema there are no arguments: whatever is sent, an empty object arrives. */
export function checkedArguments<Args>(
  subject: { readonly kind: string; readonly name: string },
  schema: ToolSchema<Args> | undefined,
): CheckedArguments<Args> {
  const none = Object.freeze({}) as Args // the only value of "no arguments"
  if (schema === undefined) {
    return { parameters: NO_PARAMETERS, check: async () => none, checkNow: () => ({ value: none }) }
  }
  return {
    parameters: describe(subject, schema),
    async check(params) {
      const answer = await schema['~standard'].validate(params)
      if (answer.issues) throw new ToolArgumentError(subject.name, answer.issues)
      return answer.value
    },
    checkNow(params) {
      const answer = schema['~standard'].validate(params)
      if (answer instanceof Promise) {
        throw invalid(
          subject,
          'validates asynchronously, but raise and evidence must answer at once',
        )
      }
      return answer.issues ? undefined : answer
    },
  }
}

const NO_PARAMETERS: JsonSchema = Object.freeze({
  type: 'object',
  properties: Object.freeze({}),
  additionalProperties: false,
})

function describe(subject: { kind: string; name: string }, schema: unknown): JsonSchema {
  if (!isStandardSchema(schema)) {
    throw invalid(subject, 'must be a Standard Schema, e.g. z.object({ … })')
  }
  try {
    return toJsonSchema(schema)
  } catch (error) {
    if (!SkeinError.is(error)) throw error
    throw invalid(subject, [error.message, error.hint].filter(Boolean).join(' '))
  }
}

function invalid({ kind, name }: { kind: string; name: string }, message: string): DefinitionError {
  return new DefinitionError([{ subject: `${kind} "${name}"`, field: 'args', message }])
}
