import type { Provider } from '../contract/provider.ts'
import { anthropicMessages } from '../wires/anthropic-messages/wire.ts'
import { defineVendor } from './define-vendor.ts'

/**
 * Anthropic's Messages API.
 *
 * - The API requires `max_tokens`; it is 4096 unless set in `params`.
 * - Structured output is `output_config.format`; other fields of `params.output_config` are kept.
 * - `params.system` (a list of text blocks, e.g. with `cache_control`) follows the `system` option.
 * - Cache marks: `metadata: { anthropic: { cache_control } }` on a block, message, tool or result.
 * - Beta features: set the header `anthropic-beta` in `config.headers`.
 */
export const anthropic: Provider = defineVendor({
  name: 'anthropic',
  baseUrl: 'https://api.anthropic.com/v1',
  keyVariables: ['ANTHROPIC_API_KEY'],
  authHeaders: (key) => ({ 'x-api-key': key }),
  llm: {
    wire: anthropicMessages,
    dialect: { maxTokens: 4096 },
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
