import { canonicalJson, sha256Hex } from '@skein/base'
import { messageToJSON } from '../message-json.ts'
import type { Message } from '../message.ts'
import type { MiddlewareContext } from '../middleware.ts'
import type { LLMRequest } from '../provider.ts'
import type { Tool } from '../tool.ts'

/**
 * The same for requests that would be sent the same to the same model: ids and times of messages
 * do not count, nor do keys and headers. Undefined for a request that cannot be written as JSON.
 */
export function cacheKey(
  { messages, system, params, tools, structure, config }: LLMRequest,
  { provider, modelId }: Pick<MiddlewareContext, 'provider' | 'modelId'>,
  scope = '',
): string | undefined {
  try {
    const text = canonicalJson({
      version: 1,
      scope,
      provider,
      modelId,
      baseUrl: config.baseUrl,
      system,
      messages: messages.map(contentOf),
      params,
      tools: tools.map(declarationOf),
      structure,
    })
    return sha256Hex(text)
  } catch {
    // A param that is no JSON. Whether it can be sent is the wire's to say; it cannot be looked up.
    return undefined
  }
}

function contentOf(message: Message): object {
  const { id: _id, timestamp: _timestamp, ...content } = messageToJSON(message)
  return content
}

function declarationOf({ name, description, parameters, metadata }: Tool): object {
  return { name, description, parameters, metadata }
}
