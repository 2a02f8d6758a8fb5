/** What a conversation becomes in the body of a request. */
import { llm, NoRetry, type LLMOptions, type Message, type ModelReference } from '@skein/ai'
import type { JsonObject } from '@skein/base'
import { stub } from './stub.ts'

/** Returns the body with which a model is asked to continue the messages. */
export async function sentBody(
  model: ModelReference,
  messages: readonly Message[],
  options: Partial<LLMOptions> = {},
): Promise<JsonObject> {
  const { fetch, seen } = stub()
  const config = { apiKey: 'key-0123456789', fetch, retryStrategy: new NoRetry() }
  await llm({ model, config, ...options }).generate(messages)
  return JSON.parse(seen[0]!.body) as JsonObject
}

/** Returns the last message, item or entry of a body. */
export function lastOf(body: JsonObject): JsonObject {
  const list = body['messages'] ?? body['input'] ?? body['contents']
  return (list as readonly JsonObject[]).at(-1)!
}
