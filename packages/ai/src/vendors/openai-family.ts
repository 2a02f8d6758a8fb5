import { ErrorCode, UPPError } from '../contract/error.ts'
import type { LLMCapabilities, ModelReference } from '../contract/provider.ts'
import { chatDialect, type OpenAIChatDialect } from '../wires/openai-chat/dialect.ts'
import { openaiChat } from '../wires/openai-chat/wire.ts'
import { responsesDialect, type OpenAIResponsesDialect } from '../wires/openai-responses/types.ts'
import { openaiResponses } from '../wires/openai-responses/wire.ts'
import { openaiBackground } from './background-answer.ts'
import type { VendorLLM } from './define-vendor.ts'

/**
 * Returns the format Chat Completions with a vendor's deviations from it. The deviation `media` decides which
 * media the models accept.
 */
export function chatCompletions(
  deviations: Partial<OpenAIChatDialect> = {},
  capabilities: Partial<LLMCapabilities> = {},
): VendorLLM<OpenAIChatDialect> {
  const dialect = { ...chatDialect, ...deviations }
  return {
    wire: openaiChat,
    dialect,
    capabilities: { ...capabilitiesOf(dialect.media), ...capabilities },
  }
}

/** Returns the format Responses with a vendor's deviations from it. */
export function responses(
  deviations: Partial<OpenAIResponsesDialect> = {},
): VendorLLM<OpenAIResponsesDialect> {
  const dialect = { ...responsesDialect, ...deviations }
  const capabilities = capabilitiesOf(dialect.media)
  return { wire: openaiResponses, dialect, capabilities, background: openaiBackground }
}

function capabilitiesOf(media: readonly string[]): LLMCapabilities {
  return {
    streaming: true,
    tools: true,
    structuredOutput: true,
    imageInput: media.includes('image'),
    documentInput: media.includes('document'),
    videoInput: media.includes('video'),
    audioInput: media.includes('audio'),
  }
}

/** The two APIs between which callers can choose. */
export interface Apis {
  readonly chat: VendorLLM
  readonly responses: VendorLLM
}

/**
 * Returns a function that chooses the API named in a model reference:
 * `openai('gpt-4o', { api: 'chat' })`.
 */
export function chooseApi(
  provider: string,
  apis: Apis,
  byDefault: keyof Apis,
): (reference: ModelReference) => VendorLLM {
  return ({ modelId, options }) => {
    const api = options?.['api'] ?? byDefault
    if (api === 'chat' || api === 'responses') return apis[api]
    throw new UPPError(`The model "${modelId}" asks for the API ${JSON.stringify(api)}.`, {
      code: ErrorCode.InvalidRequest,
      provider,
      modality: 'llm',
      hint: 'Known: "responses" and "chat".',
    })
  }
}
