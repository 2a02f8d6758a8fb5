import type { JsonObject, JsonValue } from '@skein/base'
import type { Message } from '../../contract/message.ts'
import type { Params } from '../../contract/provider.ts'
import type { ToolCallIdRule } from '../tool-call-id.ts'
import type { WireSettings, WrittenSettings } from '../wire.ts'

/** The settings that may differ between the models behind this format. */
export interface BedrockDialect {
  /**
   * Writes the settings of a model that has more of them than Converse, with what Converse does not know in
   * `additionalModelRequestFields`; undefined for any other model.
   */
  readonly writeSettings?: (
    settings: WireSettings,
    modelId: string,
    params: Params,
    messages: readonly Message[],
  ) => WrittenSettings | undefined
  /** Whether a model takes a schema for its answer; without it the schema goes into the system prompt. */
  readonly takesSchema?: (modelId: string) => boolean
}

/** A content block: an object with one field that names its kind. */
export type BedrockBlock = JsonObject

/** A complete answer. Untrusted: every field is checked where it is read. */
export interface BedrockResponse {
  readonly output?: JsonValue
  readonly stopReason?: JsonValue
  readonly usage?: JsonValue
}

/** The name of this vendor format, as stored in metadata. */
export const API = 'bedrock-converse'

/** The ids of tool calls that the API accepts. */
export const toolUseIdRule: ToolCallIdRule = { pattern: /^[a-zA-Z0-9_-]+$/, maxLength: 64 }
