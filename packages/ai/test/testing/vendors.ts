import type { ModelReference } from '@skein/ai'
import { anthropic } from '@skein/ai/anthropic'
import { azureOpenai } from '@skein/ai/azure-openai'
import { bedrock } from '@skein/ai/bedrock'
import { cerebras } from '@skein/ai/cerebras'
import { deepseek } from '@skein/ai/deepseek'
import { google } from '@skein/ai/google'
import { groq } from '@skein/ai/groq'
import { mistral } from '@skein/ai/mistral'
import { moonshot } from '@skein/ai/moonshot'
import { ollama } from '@skein/ai/ollama'
import { openai } from '@skein/ai/openai'
import { openaiCompatible } from '@skein/ai/openai-compatible'
import { openrouter } from '@skein/ai/openrouter'
import { vertex } from '@skein/ai/vertex'
import { xai } from '@skein/ai/xai'

export interface VendorUnderTest {
  readonly name: string
  readonly model: ModelReference
  /** Of the paths on a vendor server. */
  readonly prefix: '' | '/v1' | '/v1beta' | '/api'
}

const local = openaiCompatible({ name: 'local', baseUrl: 'http://127.0.0.1:1/v1' })

const place = { project: 'p', location: 'europe-west4' }

/** Every API of every shipped vendor. */
export const vendors: readonly VendorUnderTest[] = [
  { name: 'anthropic', model: anthropic('claude-sonnet-4-5'), prefix: '/v1' },
  { name: 'openai responses', model: openai('gpt-5'), prefix: '/v1' },
  { name: 'openai chat', model: openai('gpt-4o', { api: 'chat' }), prefix: '/v1' },
  { name: 'google', model: google('gemini-3-pro'), prefix: '/v1beta' },
  { name: 'google 2.5', model: google('gemini-2.5-flash'), prefix: '/v1beta' },
  {
    name: 'google interactions',
    model: google('gemini-3-pro', { api: 'interactions' }),
    prefix: '/v1beta',
  },
  { name: 'ollama', model: ollama('qwen3'), prefix: '/api' },
  {
    name: 'bedrock',
    model: bedrock('eu.anthropic.claude-sonnet-4-5-20250929-v1:0', { region: 'eu-central-1' }),
    prefix: '',
  },
  { name: 'vertex', model: vertex('gemini-3-pro', place), prefix: '' },
  { name: 'vertex claude', model: vertex('claude-sonnet-4-5', place), prefix: '' },
  { name: 'openrouter', model: openrouter('x/y'), prefix: '/v1' },
  { name: 'groq', model: groq('llama'), prefix: '/v1' },
  { name: 'xai', model: xai('grok-4'), prefix: '/v1' },
  { name: 'xai responses', model: xai('grok-4', { api: 'responses' }), prefix: '/v1' },
  { name: 'deepseek', model: deepseek('deepseek-chat'), prefix: '/v1' },
  { name: 'mistral', model: mistral('mistral-large'), prefix: '/v1' },
  { name: 'cerebras', model: cerebras('llama'), prefix: '/v1' },
  { name: 'moonshot', model: moonshot('kimi'), prefix: '/v1' },
  { name: 'azure-openai', model: azureOpenai('deployment'), prefix: '/v1' },
  { name: 'openai-compatible', model: local('any'), prefix: '/v1' },
]
