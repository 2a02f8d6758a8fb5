import type { SchemaArguments, SchemaArgumentsOptions, ToolSchema } from '@skein/ai'
import { schemaArguments } from '@skein/ai/engine'
import { SkeinError, isStandardSchema, type ArgumentParser, type JsonSchema } from '@skein/base'
import { DefinitionError } from './definition-error.ts'

/** What `defineTool` and `defineEffect` make of their `args`. */
interface DefinedArguments<Args> extends Omit<SchemaArguments<Args>, 'parser'> {
  readonly parser: ArgumentParser | undefined
}

/**
 * Creates the parse phase of a tool or an effect. Without a schema there is none: the code gets an empty object,
 * whatever the model sends.
 */
export function definedArguments<Args>(
  subject: { readonly kind: string; readonly name: string },
  schema: ToolSchema<Args> | undefined,
  options?: SchemaArgumentsOptions,
): DefinedArguments<Args> {
  if (schema === undefined) {
    const none = Object.freeze({}) as Args // the only value of `NoArguments`
    return { parameters: NO_PARAMETERS, parser: undefined, read: async () => none }
  }
  if (!isStandardSchema(schema)) {
    throw invalidArguments(subject, 'must be a Standard Schema, e.g. z.object({ … })')
  }
  try {
    return schemaArguments(subject.name, schema, options)
  } catch (error) {
    if (!SkeinError.is(error)) throw error
    throw invalidArguments(subject, [error.message, error.hint].filter(Boolean).join(' '), error)
  }
}

const NO_PARAMETERS: JsonSchema = Object.freeze({
  type: 'object',
  properties: Object.freeze({}),
  additionalProperties: false,
})

function invalidArguments(
  { kind, name }: { kind: string; name: string },
  message: string,
  cause?: unknown,
): DefinitionError {
  return new DefinitionError([{ subject: `${kind} "${name}"`, field: 'args', message }], { cause })
}
