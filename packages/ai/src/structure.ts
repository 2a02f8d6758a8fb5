import { toJsonSchema, type JsonSchema, type StandardSchemaV1 } from '@skein/base'
import { ErrorCode, UPPError } from './error.ts'
import type { StreamEvent } from './event.ts'
import type { AssistantMessage } from './message.ts'
import { hookError, type ErrorOrigin } from './to-upp-error.ts'

/**
 * The shape of a structured answer: any Standard Schema that can write itself as JSON Schema, or JSON
 * Schema itself. `Data` is what the schema accepts, because answers are not validated (UPP §12.2).
 */
export type Structure<Data = unknown> = StandardSchemaV1<Data, unknown> | JsonSchema

/** The JSON Schema to send. */
export function toStructure(structure: Structure, origin: ErrorOrigin): JsonSchema {
  try {
    return toJsonSchema(structure)
  } catch (error) {
    throw hookError(error, 'Reading the structure', origin)
  }
}

/** The text of a structured answer streams as `object_delta`; wires know nothing of it. */
export function toObjectEvents(events: readonly StreamEvent[]): readonly StreamEvent[] {
  return events.map((event) => {
    if (event.type === 'text_delta')
      return { type: 'object_delta', index: event.index, delta: event.delta }
    if (event.type === 'content_block_start' && event.delta.block === 'text')
      return { ...event, delta: { ...event.delta, block: 'object' } }
    return event
  })
}

/** The data of a structured answer. Parsed, not validated: off-schema JSON passes (UPP §12.2). */
export function parseData(
  message: AssistantMessage,
  stopReason: string,
  origin: ErrorOrigin,
): unknown {
  try {
    return JSON.parse(message.text)
  } catch (cause) {
    throw new UPPError(`The structured answer is not JSON (stop reason: ${stopReason}).`, {
      code: ErrorCode.InvalidResponse,
      ...origin,
      cause,
      hint: 'error.turn holds the answer. With "max_tokens" it was cut off: allow more tokens.',
    })
  }
}
