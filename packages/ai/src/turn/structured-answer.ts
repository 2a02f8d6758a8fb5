import { isStandardSchema, type JsonSchema, type StandardSchemaV1, toJsonSchema } from '@skein/base'
import {
  ErrorCode,
  type ErrorOrigin,
  hookError,
  invalidRequest,
  UPPError,
} from '../contract/error.ts'
import type { AssistantMessage } from '../contract/message.ts'
import { type DataIssue, pointerSegment } from '../contract/structure.ts'

/**
 * The shape of a structured answer: a Standard Schema that can convert itself to JSON Schema, or JSON Schema
 * itself. `Data` is the schema's input type, because answers are not transformed (UPP §12.2).
 */
export type Structure<Data = unknown> = StandardSchemaV1<Data, unknown> | JsonSchema

/** Returns the JSON Schema of a structure, or of something else that is declared with a schema. */
export function toStructure(
  structure: Structure,
  origin: ErrorOrigin,
  what = 'structure',
): JsonSchema {
  try {
    return toJsonSchema(structure)
  } catch (error) {
    throw hookError(error, `Reading the ${what}`, origin)
  }
}

/**
 * Parses the data of a structured answer. It is not validated here: JSON that breaks the schema passes (UPP
 * §12.2).
 */
export function parseData(
  { text }: AssistantMessage,
  stopReason: string,
  origin: ErrorOrigin,
): unknown {
  try {
    // JSON that ends with a digit is one number. In an answer that was cut off, more of its digits may be missing.
    if (/max_tokens|context_window|content_filter/.test(stopReason) && /\d$/.test(text))
      throw new Error('The number at its end may be incomplete.')
    return JSON.parse(text) as unknown
  } catch (cause) {
    throw new UPPError(`The structured answer is not JSON (stop reason: ${stopReason}).`, {
      code: ErrorCode.InvalidResponse,
      ...origin,
      cause,
      hint: 'error.turn holds the answer. With "max_tokens" it was cut off: allow more tokens.',
    })
  }
}

/** Checks the data of a structured answer against its schema; returns an empty list if it fits. */
export type DataCheck = (data: unknown) => Promise<readonly DataIssue[]>

/**
 * Returns the check for `validate: true`, which is the validation of the schema itself. Throws if the
 * structure is plain JSON Schema, which cannot validate.
 */
export function checkOf(structure: unknown, origin: ErrorOrigin): DataCheck {
  if (!isStandardSchema(structure))
    throw invalidRequest(
      '`validate` needs a `structure` that can validate; raw JSON Schema cannot.',
      origin,
      "Pass a Zod, Valibot or ArkType schema, or jsonSchema({ … }) of '@skein/ai/json-schema'.",
    )
  return async (data) => {
    try {
      const { issues = [] } = await structure['~standard'].validate(data)
      return issues.map(({ message, path = [] }) => ({
        pointer: path.map((part) => pointerSegment(keyOf(part))).join(''),
        message,
      }))
    } catch (error) {
      throw hookError(error, 'The validation of the structured answer', origin)
    }
  }
}

function keyOf(part: PropertyKey | { readonly key: PropertyKey }): string {
  return String(typeof part === 'object' ? part.key : part)
}

/** The error of data that does not fit its schema. */
export function mismatchError(issues: readonly DataIssue[], origin: ErrorOrigin): UPPError {
  const [first] = issues
  const rest = issues.length > 1 ? ` (and ${issues.length - 1} more)` : ''
  return new UPPError(
    `The structured answer does not fit its schema: ${first?.pointer || 'the answer'}: ${first?.message}${rest}`,
    {
      code: ErrorCode.InvalidResponse,
      ...origin,
      issues,
      hint: 'error.issues lists every place, error.turn holds the answer; `repair: 1` asks the model once more.',
    },
  )
}

/** Returns the message that tells the model what is wrong with its structured answer. */
export function repairText(issues: readonly DataIssue[] | undefined): string {
  const lines = issues?.map(
    ({ pointer, message }) => `- ${pointer || '(the whole answer)'}: ${message}`,
  )
  return lines
    ? `Your answer does not fit the schema:\n${lines.join('\n')}\nAnswer again with the whole, corrected JSON and nothing else.`
    : 'Your answer is not JSON. Answer again with the whole JSON that the schema asks for and nothing else.'
}
