import type { BoundLLMModel } from '../contract/provider.ts'

const web = /^https?:\/\//

/** The media that a vendor reads from an address, by provider name and, where it matters, vendor format. */
const readers: Readonly<Record<string, Record<string, RegExp[]>>> = {
  anthropic: { 'image/*': [web], 'application/pdf': [web] },
  'openai openai-responses': { 'image/*': [web], 'application/pdf': [web] },
  'openai openai-chat': { 'image/*': [web] },
  'azure-openai openai-responses': { 'image/*': [web], 'application/pdf': [web] },
  'azure-openai openai-chat': { 'image/*': [web] },
  google: {
    '*/*': [
      /^https:\/\/generativelanguage\.googleapis\.com\/v1(?:beta)?\/files\//,
      /^https:\/\/(www\.)?youtube\.com\/watch\?v=/,
      /^https:\/\/youtu\.be\//,
      /^gs:\/\//,
    ],
  },
  groq: { 'image/*': [web] },
  mistral: { 'image/*': [web], 'application/pdf': [web] },
  openrouter: { 'image/*': [web], 'application/pdf': [web] },
  xai: { 'image/*': [web] },
}

/**
 * Returns the addresses that the model reads itself. The AI SDK downloads all others and sends their bytes, which every
 * model takes; so a model of which nothing is known reads none.
 */
export function supportedUrls({ provider, wire }: BoundLLMModel): Record<string, RegExp[]> {
  return readers[`${provider} ${wire}`] ?? readers[provider] ?? {}
}
