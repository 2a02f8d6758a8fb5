import type { JsonObject, JsonSchema, JsonValue } from '@skein/base'
import type { Source, TokenUsage } from '../contract/turn.ts'

/**
 * The part of the AI SDK's `LanguageModel` (specification v3 and v4, `ai` 6 and 7) that is used here. It is
 * declared again in this file, so that this package does not depend on the packages of the AI SDK.
 */
export interface AiSdkModel {
  readonly specificationVersion: 'v3' | 'v4'
  readonly provider: string
  readonly modelId: string
  doGenerate(options: never): PromiseLike<unknown>
  doStream(options: never): PromiseLike<unknown>
}

/** Provider-specific data of a part or a message, by provider name. */
export type AiSdkMetadata = Readonly<Record<string, JsonObject>>

/** A file: bytes or base64, an address, or text. Specification v3 has the plain value, v4 an object with `type`. */
export type AiSdkData =
  | Uint8Array
  | string
  | URL
  | { readonly type: 'data'; readonly data: Uint8Array | string }
  | { readonly type: 'url'; readonly url: URL }
  | { readonly type: 'text'; readonly text: string }
  /** A file that was uploaded to a provider. */
  | { readonly type: 'reference'; readonly reference: Readonly<Record<string, string>> }

/** A part of a message in a prompt. */
export interface AiSdkPart {
  readonly type: string
  readonly text?: string
  readonly filename?: string
  readonly data?: AiSdkData
  readonly mediaType?: string
  readonly toolCallId?: string
  readonly toolName?: string
  readonly input?: unknown
  readonly output?: {
    readonly type: string
    readonly value?: unknown
    readonly reason?: string
    readonly providerOptions?: AiSdkMetadata
  }
  readonly providerExecuted?: boolean
  readonly providerOptions?: AiSdkMetadata
}

/** A message of a prompt. */
export interface AiSdkMessage {
  readonly role: string
  readonly content: string | readonly AiSdkPart[]
  readonly providerOptions?: AiSdkMetadata
}

/** A part of an answer, streamed or whole; `type` decides which fields are present. */
export interface AiSdkAnswerPart {
  readonly type: string
  readonly id?: string
  readonly delta?: string
  readonly text?: string
  readonly toolCallId?: string
  readonly toolName?: string
  readonly input?: string
  readonly providerExecuted?: boolean
  readonly mediaType?: string
  readonly data?: AiSdkData
  /** Of a source. */
  readonly sourceType?: string
  readonly url?: string
  readonly title?: string
  readonly modelId?: string
  readonly timestamp?: Date
  readonly warnings?: readonly AiSdkWarning[]
  readonly usage?: AiSdkUsage
  readonly finishReason?: { readonly unified: string; readonly raw?: string | undefined }
  readonly error?: unknown
  readonly providerMetadata?: AiSdkMetadata
}

/** What a provider left out or changed. */
export interface AiSdkWarning {
  readonly type: string
  readonly feature?: string
  readonly details?: string
  readonly message?: string
}

/** The tokens of an answer. */
export interface AiSdkUsage {
  readonly inputTokens: {
    readonly total?: number | undefined
    readonly noCache?: number | undefined
    readonly cacheRead?: number | undefined
    readonly cacheWrite?: number | undefined
  }
  readonly outputTokens: {
    readonly total?: number | undefined
    readonly text?: number | undefined
    readonly reasoning?: number | undefined
  }
  readonly raw?: JsonValue
}

/** The options of one call. */
export interface AiSdkCallOptions {
  readonly prompt: readonly AiSdkMessage[]
  readonly tools?: readonly {
    readonly type: string
    readonly name: string
    readonly description?: string
    readonly inputSchema?: JsonSchema
    readonly strict?: boolean
    readonly providerOptions?: AiSdkMetadata
  }[]
  readonly toolChoice?: { readonly type: string; readonly toolName?: string }
  readonly responseFormat?: { readonly type: string; readonly schema?: JsonSchema }
  readonly maxOutputTokens?: number
  readonly temperature?: number
  readonly topP?: number
  readonly topK?: number
  readonly presencePenalty?: number
  readonly frequencyPenalty?: number
  readonly stopSequences?: readonly string[]
  readonly seed?: number
  readonly reasoning?: string
  readonly headers?: Readonly<Record<string, string | undefined>>
  readonly abortSignal?: AbortSignal
  readonly providerOptions?: AiSdkMetadata
}

export const finishReasons: Readonly<Record<string, string>> = {
  end_turn: 'stop',
  stop_sequence: 'stop',
  max_tokens: 'length',
  context_window: 'length',
  tool_use: 'tool-calls',
  refusal: 'content-filter',
  content_filter: 'content-filter',
}

export function toAiSdkUsage(usage: TokenUsage): AiSdkUsage {
  const { inputTokens: total, cacheReadTokens: cacheRead, cacheWriteTokens: cacheWrite } = usage
  const { outputTokens, reasoningTokens: reasoning } = usage
  const text = reasoning === undefined ? undefined : outputTokens - reasoning
  return {
    inputTokens: { total, cacheRead, cacheWrite, noCache: total - cacheRead - cacheWrite },
    outputTokens: { total: outputTokens, reasoning, text },
  }
}

/**
 * Writes a cited page as a source part. A cited document is left out: the AI SDK requires its media type,
 * which is not known.
 */
export function toSource({ url, title }: Source): AiSdkAnswerPart[] {
  if (url === undefined) return []
  const part = { type: 'source', sourceType: 'url', id: url, url }
  return [title === undefined ? part : { ...part, title }]
}
