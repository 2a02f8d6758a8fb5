import type { JsonObject, JsonValue } from '@skein/base'
import type { AcceptedSettings } from '../../contract/accepted-settings.ts'

/** The settings that may differ between servers and models of this format. */
export interface InteractionsDialect {
  /** Returns the settings that a model accepts; undefined if nothing is known, so that all are sent as they are. */
  readonly accepts?: (modelId: string) => AcceptedSettings | undefined
}

/** One step of a conversation: `user_input`, `thought`, `model_output`, `function_call`, a step of a hosted tool, … */
export type InteractionStep = JsonObject

/** A complete answer. Untrusted: every field is checked where it is read. */
export interface Interaction {
  readonly id?: JsonValue
  readonly model?: JsonValue
  readonly status?: JsonValue
  readonly steps?: JsonValue
  readonly usage?: JsonValue
  readonly errors?: JsonValue
}

/** One event of a stream. Untrusted, like `Interaction`. */
export interface InteractionEvent {
  readonly event_type?: JsonValue
  readonly interaction?: JsonValue
  readonly status?: JsonValue
  readonly index?: JsonValue
  readonly step?: JsonValue
  readonly delta?: JsonValue
  readonly usage?: JsonValue
  readonly error?: JsonValue
}

/** The types of content inside of a step. No step has a type of the same name. */
export const contentTypes: ReadonlySet<unknown> = new Set<unknown>([
  'text',
  'image',
  'audio',
  'video',
  'document',
])

/** The name of this vendor format, as stored in metadata. */
export const API = 'google-interactions'
