import { acceptedByGrok } from '../catalog/accepted/xai.ts'
import { xaiImages } from '../images/openai.ts'
import { defineVendor } from './define-vendor.ts'
import { chatCompletions, chooseApi, responses } from './openai-family.ts'
import type { ChatParams, ResponsesParams, TwoApis } from './openai.ts'

/** Known parameters of Chat Completions: those it shares with OpenAI, and those that `@ai-sdk/xai 3.0.138` sent. */
type XaiChatParams = ChatParams & {
  readonly max_completion_tokens?: number
  readonly parallel_function_calling?: boolean
  readonly reasoning_effort?: 'none' | 'low' | 'medium' | 'high'
  readonly search_parameters?: object
  readonly service_tier?: string
}

/** Known parameters of Responses: those it shares with OpenAI, and those that `@ai-sdk/xai 5.0.12` sends. */
type XaiResponsesParams = Omit<ResponsesParams, 'include'> & {
  readonly include?: readonly (
    NonNullable<ResponsesParams['include']>[number] | 'no_inline_citations'
  )[]
  readonly logprobs?: boolean
  readonly max_turns?: number
  readonly min_p?: number
  readonly seed?: number
  readonly top_k?: number
}

/** Models of the catalog. */
type ModelId =
  | 'grok-4.6'
  | 'grok-4.5'
  | 'grok-4.3'
  | 'grok-4.20'
  | 'grok-4-1-fast-reasoning'
  | 'grok-4-1-fast-non-reasoning'
  | 'grok-4-fast-reasoning'
  | 'grok-4-fast-non-reasoning'
  | 'grok-4'
  | 'grok-code-fast-1'
  | 'grok-3'
  | 'grok-3-mini'

/**
 * xAI, through Chat Completions; `xai('grok-4', { api: 'responses' })` uses Responses instead, which offers
 * server tools such as `web_search`.
 *
 * Everything here is taken from `@ai-sdk/xai 5.0.12`, which sends only Responses but reads Chat Completions
 * in its batches, and from docs.x.ai, read in November 2026.
 */
export const xai: TwoApis<XaiChatParams, XaiResponsesParams, 'chat', ModelId> = defineVendor({
  name: 'xai',
  baseUrl: 'https://api.x.ai/v1',
  keyVariables: ['XAI_API_KEY'],
  llm: chooseApi(
    'xai',
    {
      chat: chatCompletions({ media: ['image'], accepts: acceptedByGrok }),
      responses: responses({ media: ['image'], accepts: acceptedByGrok }),
    },
    'chat',
  ),
  image: xaiImages(),
})

export default xai
