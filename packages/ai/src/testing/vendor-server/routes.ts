import { anthropicMessagesServer } from '../../wires/anthropic-messages/server.ts'
import { googleGenerateServer } from '../../wires/google-generate/server.ts'
import { ollamaChatServer } from '../../wires/ollama-chat/server.ts'
import { openaiChatServer } from '../../wires/openai-chat/server.ts'
import { openaiResponsesServer } from '../../wires/openai-responses/server.ts'
import type { WireServer } from '../../wires/wire.ts'

export type VendorEndpointKind = 'llm' | 'embeddings' | 'images' | 'image_edits' | 'models' | 'none'

/** What an address of some vendor means, and in whose words errors are told there. */
export interface VendorRoute {
  readonly kind: VendorEndpointKind
  readonly wire: WireServer
}

type Pattern = readonly [path: RegExp, kind: VendorEndpointKind, wire: WireServer]

const patterns: readonly Pattern[] = [
  [/\/chat\/completions$/, 'llm', openaiChatServer],
  [/\/responses$/, 'llm', openaiResponsesServer],
  [/\/messages$/, 'llm', anthropicMessagesServer],
  [/:(streamG|g)enerateContent$/, 'llm', googleGenerateServer],
  [/\/api\/chat$/, 'llm', ollamaChatServer],
  [/:(batchEmbedContents|embedContent)$/, 'embeddings', googleGenerateServer],
  [/:predict$/, 'images', googleGenerateServer],
  [/\/api\/embed$/, 'embeddings', ollamaChatServer],
  [/\/embeddings$/, 'embeddings', openaiChatServer],
  [/\/images\/generations$/, 'images', openaiChatServer],
  [/\/images\/edits$/, 'image_edits', openaiChatServer],
  [/\/models$/, 'models', openaiChatServer],
]

export function findVendorRoute(path: string): VendorRoute {
  const found = patterns.find(([pattern]) => pattern.test(path))
  return found ? { kind: found[1], wire: found[2] } : { kind: 'none', wire: openaiChatServer }
}
