import type { Provider } from '../contract/provider.ts'
import { versionHeader } from '../wires/anthropic-messages/request.ts'
import { anthropicMessages } from '../wires/anthropic-messages/wire.ts'
import { defineVendor } from './define-vendor.ts'

/**
 * Anthropic's Messages API.
 *
 * - The API requires `max_tokens`. Unless set in `params`, it is the output limit of the model, or 4096
 *   for an unknown model, and at least 4096 above `params.thinking.budget_tokens`.
 * - Structured output is `output_config.format`; other fields of `params.output_config` are kept.
 * - `params.system` (a list of text blocks, e.g. with `cache_control`) follows the `system` option.
 * - Cache marks: `metadata: { anthropic: { cache_control } }` on a block, message, tool or result.
 * - Beta features: set the header `anthropic-beta` in `config.headers`.
 *
 * Request bodies are compared with those of `@anthropic-ai/sdk 1.8.0` (docs/vendor-bodies.md).
 */
export const anthropic: Provider = defineVendor({
  name: 'anthropic',
  baseUrl: 'https://api.anthropic.com/v1',
  keyVariables: ['ANTHROPIC_API_KEY'],
  headers: versionHeader,
  authHeaders: (key) => ({ 'x-api-key': key }),
  llm: {
    wire: anthropicMessages,
    dialect: { maxTokens: 4096, outputLimit },
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

/**
 * The largest `max_tokens` that the API accepts, by the start of the model's name; the first match counts.
 * Extracted from the catalogue (`@skein/ai/catalogue`), which is too large to be part of this page; a test
 * compares the two.
 */
const outputLimits: readonly (readonly [names: RegExp, tokens: number])[] = [
  [/^claude-(?:opus|sonnet)-4-[678]|^claude-(?:opus|sonnet|haiku|fable)-5/, 128_000],
  [/^claude-(?:opus|sonnet|haiku)-4-5|^claude-sonnet-4|^claude-3-7-sonnet/, 64_000],
  [/^claude-opus-4/, 32_000],
  [/^claude-3-5/, 8192],
]

function outputLimit(modelId: string): number | undefined {
  return outputLimits.find(([names]) => names.test(modelId))?.[1]
}

export default anthropic
