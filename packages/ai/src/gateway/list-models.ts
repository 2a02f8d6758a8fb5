import type { JsonObject } from '@skein/base'
import type { WireReply } from './answer-wire.ts'
import type { Route } from './routes.ts'

/** `GET /v1/models` and `/v1/models/{name}` as OpenAI or Anthropic would answer. */
export function listModels(
  { wire, model }: Route & { kind: 'models' },
  names: readonly string[],
  createdAt: number,
): WireReply {
  const isAnthropic = wire.name === 'anthropic-messages'
  const describe = isAnthropic ? anthropicModel : openaiModel
  const list = names.map((name) => describe(name, createdAt))
  const body: JsonObject =
    model !== undefined
      ? describe(model, createdAt)
      : isAnthropic
        ? { data: list, has_more: false, first_id: names[0] ?? null, last_id: names.at(-1) ?? null }
        : { object: 'list', data: list }
  return {
    status: 200,
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  }
}

function openaiModel(id: string, createdAt: number): JsonObject {
  return { id, object: 'model', created: Math.floor(createdAt / 1000), owned_by: 'gateway' }
}

function anthropicModel(id: string, createdAt: number): JsonObject {
  const created_at = new Date(createdAt).toISOString()
  return { type: 'model', id, display_name: id, created_at }
}
