import { acceptedByClaude } from '../catalog/accepted/anthropic.ts'
import { versionHeader } from '../wires/anthropic-messages/request.ts'
import { anthropicMessages } from '../wires/anthropic-messages/wire.ts'
import { defineVendor, type Vendor } from './define-vendor.ts'

/**
 * Known parameters, by the names of `@anthropic-ai/sdk 1.10.0`; those after the first blank line need a beta
 * header (`config.headers['anthropic-beta']`), those after the second are for models before Claude Opus 4.7. What the
 * SDK sends as a header is not among them: `config.headers` takes `anthropic-user-profile-id` and the like.
 */
type AnthropicParams = {
  readonly billing_policy?: object
  readonly cache_control?: CacheControl
  readonly container?: string | object
  readonly diagnostics?: object
  readonly inference_geo?: string
  readonly max_tokens?: number
  readonly metadata?: { readonly user_id?: string }
  readonly output_config?: {
    readonly effort?: 'low' | 'medium' | 'high' | 'xhigh' | 'max'
    readonly format?: object
    readonly [option: string]: unknown
  }
  readonly service_tier?: 'auto' | 'standard_only'
  readonly speed?: 'standard' | 'fast'
  readonly stop_sequences?: readonly string[]
  readonly system?: string | readonly object[]
  readonly thinking?:
    | {
        readonly type: 'enabled'
        readonly budget_tokens: number
        readonly display?: 'summarized' | 'omitted'
      }
    | { readonly type: 'adaptive'; readonly display?: 'summarized' | 'omitted' }
    | { readonly type: 'between_tools' }
    | { readonly type: 'disabled' }
  readonly tool_choice?:
    | { readonly type: 'auto' | 'any'; readonly disable_parallel_tool_use?: boolean }
    | {
        readonly type: 'tool'
        readonly name: string
        readonly disable_parallel_tool_use?: boolean
      }
    | { readonly type: 'none' }
  /** Tools that the vendor runs itself; the tools of `llm` are added to them. */
  readonly tools?: readonly object[]

  readonly compaction?: object
  readonly context_management?: object
  readonly fallback_credit_token?: string | object
  readonly fallbacks?: readonly object[] | string | object
  readonly mcp_servers?: readonly object[]
  readonly output_format?: object
  readonly thread?: object

  readonly temperature?: number
  readonly top_k?: number
  readonly top_p?: number
}

/** A cache mark: the vendor caches the request up to the block that has it. */
type CacheControl = {
  readonly type: 'ephemeral'
  readonly ttl?: '5m' | '1h'
}

/** The model ids of the same SDK, without dated ones such as `claude-opus-4-20250514`. */
type ModelId =
  | 'claude-opus-5-5'
  | 'claude-opus-5'
  | 'claude-sonnet-5-5'
  | 'claude-sonnet-5'
  | 'claude-haiku-5-5'
  | 'claude-fable-5-2'
  | 'claude-fable-5-1'
  | 'claude-fable-5'
  | 'claude-mythos-5-2'
  | 'claude-mythos-5-1'
  | 'claude-mythos-5'
  | 'claude-mythos-preview'
  | 'claude-opus-4-8'
  | 'claude-opus-4-7'
  | 'claude-opus-4-6'
  | 'claude-opus-4-5'
  | 'claude-sonnet-4-6'
  | 'claude-sonnet-4-5'
  | 'claude-haiku-4-5'

/**
 * Anthropic's Messages API.
 *
 * - The API requires `max_tokens`. Unless set in `params`, it is the output limit of the model, or 4096
 *   for an unknown model, at least 4096 above `params.thinking.budget_tokens`, and 32,000 with adaptive thinking.
 * - Structured output is `output_config.format`; other fields of `params.output_config` are kept.
 * - `params.system` (a list of text blocks, e.g. with `cache_control`) follows the `system` option.
 * - Cache marks: `metadata: { anthropic: { cache_control } }` on a block, message, tool or result.
 * - Beta features: set the header `anthropic-beta` in `config.headers`.
 *
 * Request bodies are compared with those of `@anthropic-ai/sdk 1.10.0` (docs/vendor-bodies.md).
 */
export const anthropic: Vendor<AnthropicParams, ModelId> = defineVendor({
  name: 'anthropic',
  baseUrl: 'https://api.anthropic.com/v1',
  keyVariables: ['ANTHROPIC_API_KEY'],
  headers: versionHeader,
  authHeaders: (key) => ({ 'x-api-key': key }),
  llm: {
    wire: anthropicMessages,
    dialect: { maxTokens: 4096, accepts: acceptedByClaude },
    capabilities: {
      streaming: true,
      tools: true,
      structuredOutput: true,
      imageInput: true,
      documentInput: true,
      videoInput: false,
      audioInput: false,
    },
  },
})

export default anthropic
