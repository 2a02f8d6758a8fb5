import type { Provider } from '../contract/provider.ts'
import { openaiParameters } from '../wires/settings.ts'
import { defineVendor } from './define-vendor.ts'
import { chatCompletions } from './openai-family.ts'

/**
 * Groq: fast inference of open models. Reasoning arrives in `reasoning` if `params` request it
 * (`reasoning_format: 'parsed'`); tools that Groq ran are in `message.metadata.groq.executed_tools`.
 *
 * Request bodies are compared with those of `groq-sdk 1.6.0` (docs/vendor-bodies.md).
 */
export const groq: Provider = defineVendor({
  name: 'groq',
  baseUrl: 'https://api.groq.com/openai/v1',
  keyVariables: ['GROQ_API_KEY'],
  llm: chatCompletions({ media: ['image'], parameters: openaiParameters }),
})

export default groq
