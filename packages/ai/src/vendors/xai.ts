import { xaiImages } from '../images/openai.ts'
import type { Provider } from '../contract/provider.ts'
import { defineVendor } from './define-vendor.ts'
import { chatCompletions, chooseApi, responses } from './openai-family.ts'

/**
 * xAI, through Chat Completions; `xai('grok-4', { api: 'responses' })` uses Responses instead,
 * which offers server tools such as `web_search`.
 *
 * The facts are those of `@ai-sdk/xai 5.0.12`, which uses Responses alone and reads Chat Completions in its
 * batches, and of docs.x.ai, read in November 2026.
 */
export const xai: Provider = defineVendor({
  name: 'xai',
  baseUrl: 'https://api.x.ai/v1',
  keyVariables: ['XAI_API_KEY'],
  llm: chooseApi(
    'xai',
    { chat: chatCompletions({ media: ['image'] }), responses: responses({ media: ['image'] }) },
    'chat',
  ),
  image: xaiImages(),
})

export default xai
