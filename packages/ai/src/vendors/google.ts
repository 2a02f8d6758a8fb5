import type { JsonObject } from '@skein/base'
import { acceptedByGemini, needsInteractions } from '../catalog/accepted/google.ts'
import type { EmbeddingHandler } from '../embedding.ts'
import {
  httpEmbedding,
  type DecodedEmbeddings,
  type EmbeddingWire,
} from '../embeddings/http-embedding.ts'
import { googleImages } from '../images/google.ts'
import type { VendorEndpoint } from '../transport/endpoint.ts'
import { ErrorCode, UPPError } from '../contract/error.ts'
import type { LLMCapabilities, ModelReference, Provider } from '../contract/provider.ts'
import { decodeError } from '../wires/google-generate/error.ts'
import { mediaPart } from '../wires/google-generate/request.ts'
import type { GoogleDialect } from '../wires/google-generate/types.ts'
import { unsignedCall } from '../wires/google-generate/unsigned-call.ts'
import { googleGenerate } from '../wires/google-generate/wire.ts'
import type { InteractionsDialect } from '../wires/google-interactions/types.ts'
import { googleInteractions } from '../wires/google-interactions/wire.ts'
import { imageSource } from '../wires/media.ts'
import { countOf, isEmpty, listOf, objectOf, without } from '../wires/read-json.ts'
import { googleBackground } from './background-answer.ts'
import { defineVendor, type VendorLLM } from './define-vendor.ts'

/**
 * Known parameters, by the names of `@google/genai 3.1.0`. Those of `generationConfig` may be given inside
 * it or directly in `params`.
 */
export type GoogleParams = GenerationConfig & {
  readonly cachedContent?: string
  readonly generationConfig?: GenerationConfig
  readonly labels?: Readonly<Record<string, string>>
  readonly safetySettings?: readonly object[]
  readonly serviceTier?: 'flex' | 'standard' | 'priority'
  readonly store?: boolean
  readonly systemInstruction?: string | object
  readonly toolConfig?: {
    readonly functionCallingConfig?: object
    readonly includeServerSideToolInvocations?: boolean
    readonly retrievalConfig?: object
  }
  /** Tools that the vendor runs itself; the tools of `llm` are added to them. */
  readonly tools?: readonly object[]
}

type GenerationConfig = {
  readonly audioTimestamp?: boolean
  readonly audioTranscriptionConfig?: object
  readonly candidateCount?: number
  readonly enableAffectiveDialog?: boolean
  readonly enableEnhancedCivicAnswers?: boolean
  readonly frequencyPenalty?: number
  readonly imageConfig?: object
  readonly logprobs?: number
  readonly maxOutputTokens?: number
  readonly mediaResolution?: `MEDIA_RESOLUTION_${'LOW' | 'MEDIUM' | 'HIGH'}`
  readonly modelSelectionConfig?: object
  readonly presencePenalty?: number
  readonly responseFormat?: object
  readonly responseJsonSchema?: unknown
  readonly responseLogprobs?: boolean
  readonly responseMimeType?: string
  readonly responseModalities?: readonly ('TEXT' | 'IMAGE' | 'AUDIO')[]
  readonly responseSchema?: object
  readonly routingConfig?: object
  readonly seed?: number
  readonly speechConfig?: string | object
  readonly stopSequences?: readonly string[]
  readonly temperature?: number
  readonly thinkingConfig?: {
    readonly includeThoughts?: boolean
    readonly thinkingBudget?: number
    readonly thinkingLevel?: 'MINIMAL' | 'LOW' | 'MEDIUM' | 'HIGH'
  }
  readonly topK?: number
  readonly topP?: number
  readonly translationConfig?: object
}

/**
 * Known parameters of Interactions, by the names of `@google/genai 3.1.0`. Those of `generation_config` may be given
 * inside it or directly in `params`.
 */
type InteractionsParams = InteractionsConfig & {
  /** Asks an agent, e.g. for deep research, instead of the model. */
  readonly agent?: string
  readonly agent_config?: object
  readonly background?: boolean
  readonly continuation_token?: string
  readonly environment?: string | object
  readonly generation_config?: InteractionsConfig
  readonly labels?: Readonly<Record<string, string>>
  /** Continues a conversation that Google stores; the messages are then sent in addition to it. */
  readonly previous_interaction_id?: string
  readonly response_format?: object
  readonly response_modalities?: readonly ('text' | 'image' | 'audio' | 'video')[]
  readonly safety_settings?: readonly object[]
  readonly service_tier?: 'flex' | 'standard' | 'priority' | 'deferred'
  /** Google stores interactions unless this is false. */
  readonly store?: boolean
  readonly system_instruction?: string
  /** Tools that the vendor runs itself; the tools of `llm` are added to them. */
  readonly tools?: readonly object[]
  readonly webhook_config?: object
}

type InteractionsConfig = {
  readonly image_config?: object
  readonly max_output_tokens?: number
  readonly seed?: number
  readonly speech_config?: object
  readonly stop_sequences?: readonly string[]
  readonly temperature?: number
  readonly thinking_level?: 'minimal' | 'low' | 'medium' | 'high'
  readonly thinking_summaries?: 'auto' | 'none'
  readonly tool_choice?: 'auto' | 'any' | 'none' | 'validated' | object
  readonly top_p?: number
  readonly transcription_config?: object
  readonly video_config?: object
}

/** The two APIs of Google. The one that is chosen decides the known parameters. */
interface GoogleVendor extends Pick<Provider, 'name' | 'handlers'> {
  <Api extends 'generate' | 'interactions' = 'generate'>(
    modelId: ModelId | (string & {}),
    options?: { readonly api?: Api },
  ): ModelReference<{ generate: GoogleParams; interactions: InteractionsParams }[Api]>
}

/** The model ids of `@skein/ai/catalog`, and Google's aliases such as `gemini-pro-latest`. */
type ModelId =
  | 'gemini-pro-latest'
  | 'gemini-flash-latest'
  | 'gemini-flash-lite-latest'
  | 'gemini-3.8-flash'
  | 'gemini-3.7-flash'
  | 'gemini-3.6-flash'
  | 'gemini-3.5-flash'
  | 'gemini-3.5-flash-lite'
  | 'gemini-3.1-pro-preview'
  | 'gemini-3.1-flash-lite'
  | 'gemini-3-pro-preview'
  | 'gemini-3-pro-image-preview'
  | 'gemini-3-flash-preview'
  | 'gemini-2.5-pro'
  | 'gemini-2.5-flash'
  | 'gemini-2.5-flash-lite'
  | 'gemini-2.5-flash-image'
  | 'gemini-2.0-flash'
  | 'gemini-embedding-001'
  | 'gemma-4-31b-it'

/** Gemini's `batchEmbedContents`: at most 100 inputs per request; each input gets a copy of `params`. */
function googleEmbeddings(): (endpoint: VendorEndpoint) => EmbeddingHandler {
  return (endpoint) => httpEmbedding(endpoint, embeddingWire)
}

const embeddingWire: EmbeddingWire = {
  maxBatchSize: 100,
  imageInput: true,
  encode: (request, modelId) => ({
    path: `/${resourceOf(modelId).split('/').map(encodeURIComponent).join('/')}:batchEmbedContents`,
    body: {
      requests: request.inputs.map((input) => ({
        model: resourceOf(modelId),
        content: {
          parts: [
            typeof input === 'string'
              ? { text: input }
              : input.type === 'text'
                ? { text: input.text }
                : mediaPart(imageSource(input)),
          ],
        },
        taskType: request.inputType && taskTypes[request.inputType],
        // `params` are sent unchanged (UPP §2.1); non-JSON values fail when the body is written.
        ...(request.params as JsonObject),
      })),
    },
  }),
  decode: decodeEmbeddings,
  decodeError,
}

function resourceOf(modelId: string): string {
  return modelId.includes('/') ? modelId : `models/${modelId}`
}

const taskTypes = { document: 'RETRIEVAL_DOCUMENT', query: 'RETRIEVAL_QUERY' } as const

const listField = new Set(['embeddings'])
const valueField = new Set(['values'])

function decodeEmbeddings(body: JsonObject): DecodedEmbeddings {
  const usage = objectOf(body['usageMetadata'])
  return {
    vectors: listOf(body['embeddings']).map((item) => {
      const entry = objectOf(item) ?? {}
      const metadata = without(entry, valueField)
      return { vector: entry['values'], metadata: isEmpty(metadata) ? undefined : metadata }
    }),
    totalTokens: countOf(usage?.['totalTokenCount'] ?? usage?.['promptTokenCount']),
    metadata: without(body, listField),
  }
}

const capabilities: LLMCapabilities = {
  streaming: true,
  tools: true,
  structuredOutput: true,
  imageInput: true,
  documentInput: true,
  videoInput: true,
  audioInput: true,
}

const generate: VendorLLM<GoogleDialect> = {
  wire: googleGenerate,
  dialect: { unsignedCall, accepts: acceptedByGemini },
  capabilities,
}

const interactions: VendorLLM<InteractionsDialect> = {
  wire: googleInteractions,
  dialect: { accepts: acceptedByGemini },
  capabilities,
  background: googleBackground,
}

/** Returns the API that a model reference names, or else the one that its model needs. */
function chooseGoogleApi({ modelId, options }: ModelReference): VendorLLM {
  const api = options?.['api'] ?? (needsInteractions(modelId) ? 'interactions' : 'generate')
  if (api === 'generate') return generate
  if (api === 'interactions') return interactions
  throw new UPPError(`The model "${modelId}" asks for the API ${JSON.stringify(api)}.`, {
    code: ErrorCode.InvalidRequest,
    provider: 'google',
    modality: 'llm',
    hint: 'Known: "generate" and "interactions".',
  })
}

/**
 * Google's Gemini API: `generateContent`, and Interactions for models that the catalog lists as available only there.
 * `google(id, { api: 'interactions' })` or `{ api: 'generate' }` chooses one of them.
 *
 * - Generation parameters (`temperature`, `thinkingConfig`, …) may be given directly in `params` or inside
 *   `params.generationConfig`, which is sent unchanged and takes precedence. All others stay at the
 *   top of the body: `safetySettings`, `toolConfig`, `cachedContent`, `labels`, `serviceTier`, `store`.
 *   Those of Interactions have other names (`generation_config`, `thinking_level`, …).
 * - Native tools go in `params.tools`, e.g. `[{ googleSearch: {} }]`; for Interactions `[{ type: 'google_search' }]`.
 * - `params.systemInstruction` (a text, or an object with `parts`) follows the `system` option.
 * - Through Interactions, too, every request has the whole conversation. Google stores it unless `params` have
 *   `store: false`.
 * - The version of the API is `v1beta`, which has all of `v1`; for that one set `config.baseUrl`.
 * - Grounding, citations and safety ratings are in `message.metadata.google`.
 *
 * Request bodies are compared with those of `@google/genai 3.1.0` (docs/vendor-bodies.md).
 */
export const google: GoogleVendor = defineVendor<GoogleVendor>({
  name: 'google',
  baseUrl: 'https://generativelanguage.googleapis.com/v1beta',
  keyVariables: ['GEMINI_API_KEY', 'GOOGLE_API_KEY', 'GOOGLE_GENERATIVE_AI_API_KEY'],
  authHeaders: (key) => ({ 'x-goog-api-key': key }),
  llm: chooseGoogleApi,
  embedding: googleEmbeddings(),
  image: googleImages(),
})

export default google
