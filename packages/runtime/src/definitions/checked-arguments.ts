import { isStandardSchema, SkeinError, toJsonSchema, type JsonSchema } from '@skein/base'
import { ToolArgumentError, type ToolSchema } from '@skein/ai'
import { DefinitionError } from './resolved.ts'

/** The arguments of a tool or an effect: their JSON Schema for models, and how they are checked. */
export interface CheckedArguments<Args> {
  readonly parameters: JsonSchema
  readonly check: (params: unknown) => Promise<Args>
  /** The synchronous check, for `raise` and `evidence`; undefined when the arguments are invalid. */
  readonly checkNow: (params: unknown) => { readonly value: Args } | undefined
}

/** Reads a schema. Without one there are no arguments: `check` returns an empty object whatever was sent. */
export function checkedArguments<Args>(
  subject: { readonly kind: string; readonly name: string },
  schema: ToolSchema<Args> | undefined,
): CheckedArguments<Args> {
  const none = Object.freeze({}) as Args // the only value of "no arguments"
  if (schema === undefined) {
    return { parameters: NO_PARAMETERS, check: async () => none, checkNow: () => ({ value: none }) }
  }
  if (!isStandardSchema(schema)) {
    throw invalid(subject, 'must be a Standard Schema, e.g. z.object({ … })')
  }
  let parameters: JsonSchema
  try {
    parameters = toJsonSchema(schema)
  } catch (error) {
    if (!SkeinError.is(error)) throw error
    throw invalid(subject, [error.message, error.hint].filter(Boolean).join(' '))
  }
  return {
    parameters,
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

function invalid({ kind, name }: { kind: string; name: string }, message: string): DefinitionError {
  return new DefinitionError([{ subject: `${kind} "${name}"`, field: 'args', message }])
}
