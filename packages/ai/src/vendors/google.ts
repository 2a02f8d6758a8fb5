import { googleEmbeddings } from '../embeddings/google.ts'
import { googleImages } from '../images/google.ts'
import type { Provider } from '../contract/provider.ts'
import { googleGenerate } from '../wires/google-generate/wire.ts'
import { defineVendor } from './define-vendor.ts'

/**
 * Google's Gemini API (`generateContent`).
 *
 * - Generation parameters (`temperature`, `thinkingConfig`, …) may be given directly in `params` or inside
 *   `params.generationConfig`, which is sent unchanged and takes precedence. All others stay at the
 *   top of the body: `safetySettings`, `toolConfig`, `cachedContent`, `labels`, `serviceTier`, `store`.
 * - Native tools go in `params.tools`, e.g. `[{ googleSearch: {} }]`.
 * - Grounding, citations and safety ratings are in `message.metadata.google`.
 *
 * Request bodies are compared with those of `@google/genai 2.32.0` (docs/vendor-bodies.md).
 */
export const google: Provider = defineVendor({
  name: 'google',
  baseUrl: 'https://generativelanguage.googleapis.com/v1beta',
  keyVariables: ['GEMINI_API_KEY', 'GOOGLE_API_KEY', 'GOOGLE_GENERATIVE_AI_API_KEY'],
  authHeaders: (key) => ({ 'x-goog-api-key': key }),
  llm: {
    wire: googleGenerate,
    dialect: { unsignedCall },
    capabilities: {
      streaming: true,
      tools: true,
      structuredOutput: true,
      imageInput: true,
      documentInput: true,
      videoInput: true,
      audioInput: true,
    },
  },
  embedding: googleEmbeddings(),
  image: googleImages(),
})

/**
 * Returns the signature that Google documents for calls made by another model. Models before Gemini 3
 * neither need nor accept it. An alias (`gemini-flash-latest`) names a current model; the first models
 * had no number at all (`gemini-pro`, `gemini-pro-vision`).
 */
function unsignedCall(modelId: string): string | undefined {
  const name = modelId.slice(modelId.lastIndexOf('/') + 1)
  if (!name.startsWith('gemini-')) return undefined
  if (/^gemini-(?:[12](?:[.-]|$)|(?:pro|pro-vision|ultra)$)/.test(name)) return undefined
  return 'skip_thought_signature_validator'
}

export default google
