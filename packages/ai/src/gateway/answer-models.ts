import type { JsonObject } from '@skein/base'
import type { WireName } from '../contract/provider.ts'
import type { WireReply } from './answer-wire.ts'
import { jsonReply } from './json-reply.ts'
import type { Route } from './routes.ts'

/** Answers `GET /v1/models` and `/v1/models/{name}` in the format of OpenAI, Anthropic or Google. */
export function answerModels(
  { wire, model }: Route & { kind: 'models' },
  names: readonly string[],
  createdAt: number,
): WireReply {
  const format = formats[wire.name] ?? openaiModels
  return jsonReply(
    model === undefined
      ? format.list(
          names.map((name) => format.one(name, createdAt)),
          names,
        )
      : format.one(model, createdAt),
  )
}

interface ModelsFormat {
  one(id: string, createdAt: number): JsonObject
  list(models: readonly JsonObject[], names: readonly string[]): JsonObject
}

const openaiModels: ModelsFormat = {
  one: (id, createdAt) => ({
    id,
    object: 'model',
    created: Math.floor(createdAt / 1000),
    owned_by: 'gateway',
  }),
  list: (data) => ({ object: 'list', data }),
}

const formats: Partial<Record<WireName, ModelsFormat>> = {
  'anthropic-messages': {
    one: (id, createdAt) => ({
      type: 'model',
      id,
      display_name: id,
      created_at: new Date(createdAt).toISOString(),
    }),
    list: (data, names) => ({
      data,
      has_more: false,
      first_id: names[0] ?? null,
      last_id: names.at(-1) ?? null,
    }),
  },
  'google-generate': {
    one: (id) => ({
      name: `models/${id}`,
      displayName: id,
      supportedGenerationMethods: ['generateContent', 'streamGenerateContent', 'countTokens'],
    }),
    list: (models) => ({ models }),
  },
}
