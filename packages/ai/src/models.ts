import { isPlainObject, type JsonObject, type JsonValue, systemClock } from '@skein/base'
import { ErrorCode, invalidRequest, UPPError } from './contract/error.ts'
import type { StreamEvent } from './contract/event.ts'
import {
  type BoundLLMModel,
  createProvider,
  type LLMRequest,
  type ModelReference,
  type Provider,
  type ProviderConfig,
} from './contract/provider.ts'
import { zeroUsage } from './contract/turn.ts'
import { llm, type LLMOptions } from './llm.ts'
import type { History, InferenceInput } from './turn/to-messages.ts'
import { protectConfig } from './transport/config-secrets.ts'

/** A model that a vendor offers. A field is absent if the vendor does not state it. */
export interface ListedModel {
  /** The id that the vendor's provider takes. */
  readonly id: string
  readonly name?: string
  /** The largest number of input tokens. */
  readonly contextTokens?: number
  readonly outputTokens?: number
  /** Milliseconds since the epoch. */
  readonly createdAt?: number
  /** The vendor's own entry. */
  readonly original: JsonObject
}

/**
 * Lists the models that the vendor offers for this key, through the provider's transport: keys, retries,
 * limits and redaction are those of a call.
 *
 *     const models = await listModels(anthropic)
 */
export async function listModels(
  provider: Provider,
  { config, signal }: { readonly config?: ProviderConfig; readonly signal?: AbortSignal } = {},
): Promise<readonly ListedModel[]> {
  const bound = provider.handlers.llm?.bind(provider('models'))
  const send = bound?.send?.bind(bound)
  if (!bound || !send) throw unavailable(provider.name, 'lists its models')
  const call = {
    config: protectConfig(config),
    signal: signal ?? new AbortController().signal,
    clock: systemClock,
  }
  const { path, list, next } = lists[bound.wire ?? ''] ?? openaiList
  const models: ListedModel[] = []
  let page: string | undefined = path
  for (let count = 0; page !== undefined && count < MAX_PAGES; count++) {
    const answer: JsonValue = await send({ ...call, path: page, method: 'GET' })
    const entries = isPlainObject(answer) ? answer[list] : answer // some servers send the list alone
    if (!Array.isArray(entries))
      throw new UPPError(`The list of models of ${provider.name} cannot be read.`, {
        code: ErrorCode.InvalidResponse,
        provider: provider.name,
        modality: 'llm',
      })
    for (const entry of entries) if (isPlainObject(entry)) models.push(...toModel(entry))
    const more = next?.(answer as JsonObject)
    page = more && `${path}&${new URLSearchParams(more).toString()}`
  }
  return models
}

/** The most pages that are requested, in case a vendor's list never ends. */
const MAX_PAGES = 100

/** How a vendor format lists its models; `next` returns the parameters of the next page, if there is one. */
interface ListFormat {
  readonly path: string
  readonly list: string
  readonly next?: (answer: JsonObject) => Record<string, string> | undefined
}

const openaiList: ListFormat = { path: '/models', list: 'data' }
const lists: Readonly<Record<string, ListFormat>> = {
  'anthropic-messages': {
    path: '/models?limit=1000',
    list: 'data',
    next: ({ has_more, last_id }) =>
      has_more === true && typeof last_id === 'string' ? { after_id: last_id } : undefined,
  },
  'google-generate': {
    path: '/models?pageSize=1000',
    list: 'models',
    next: ({ nextPageToken }) =>
      typeof nextPageToken === 'string' && nextPageToken !== ''
        ? { pageToken: nextPageToken }
        : undefined,
  },
  'ollama-chat': { path: '/tags', list: 'models' },
}

function toModel(entry: Record<string, unknown>): ListedModel[] {
  // Google has the id in `name`, Ollama in `model`. The prefix `models/` of Google's ids is removed below.
  const id = [entry['id'], entry['model'], entry['name']].find((value) => typeof value === 'string')
  if (id === undefined) return []
  const top = isPlainObject(entry['top_provider']) ? entry['top_provider'] : {}
  const first = (...names: readonly string[]): number | undefined => {
    const values = names.map((name) => entry[name] ?? top[name])
    return values.find((value): value is number => typeof value === 'number')
  }
  const name = [entry['display_name'], entry['displayName'], entry['name']].find(
    (value): value is string => typeof value === 'string' && value !== '' && value !== id,
  )
  const at = entry['created'] ?? entry['created_at'] ?? entry['modified_at']
  const createdAt = typeof at === 'number' ? at * 1000 : Date.parse(String(at))
  const fields = {
    id: id.replace(/^models\//, ''),
    name,
    contextTokens: first(
      'inputTokenLimit',
      'max_input_tokens',
      'context_length',
      'context_window',
      'max_context_length',
    ),
    outputTokens: first('outputTokenLimit', 'max_tokens', 'max_completion_tokens'),
    createdAt: Number.isFinite(createdAt) ? createdAt : undefined,
    original: entry as JsonObject,
  }
  const entries = Object.entries(fields).filter(([, value]) => value !== undefined)
  return [Object.fromEntries(entries) as unknown as ListedModel] // `id` and `original` are always there
}

/**
 * Returns the number of input tokens that the vendor counts for a conversation, with the system prompt,
 * tools, structure, settings and params that `llm` would send. Nothing is generated; no middleware runs.
 *
 *     await countTokens({ model: anthropic('claude-sonnet-4-5'), system, tools }, thread, 'Hello!')
 */
export async function countTokens(
  options: LLMOptions,
  ...inputs: readonly [History, ...InferenceInput[]] | readonly InferenceInput[]
): Promise<number> {
  const model = options?.model && countingModel(options.model)
  const counter = llm({ ...options, model, middleware: [], validate: false, repair: 0 })
  const { usage } = await counter.generate(...(inputs as readonly InferenceInput[]))
  return usage.inputTokens
}

/**
 * Makes a model that answers every request with its token count only, so that `llm` prepares the request as
 * for any model: it converts schemas, reads the inputs and listens to the signal.
 */
function countingModel(reference: ModelReference): ModelReference {
  const { provider, modelId, options } = reference
  const handler = provider.handlers?.llm
  if (!handler) return reference // `llm` says what is wrong with it
  const counting = createProvider({
    name: provider.name,
    llm: {
      capabilities: handler.capabilities,
      bind(counted) {
        const bound = handler.bind({ ...counted, provider })
        const complete = async (request: LLMRequest): Promise<readonly StreamEvent[]> =>
          countEvents(await count(bound, request))
        const { modelId, provider: name, capabilities } = bound
        return {
          modelId,
          provider: name,
          capabilities,
          complete,
          async *stream(request) {
            yield await complete(request)
          },
        }
      },
    },
  })
  return counting(modelId, options)
}

/**
 * The events of an answer that only reports a token count. Its text is JSON, so that it can be parsed if the
 * request has a structure.
 */
function countEvents(inputTokens: number): readonly StreamEvent[] {
  const usage = { ...zeroUsage, inputTokens, totalTokens: inputTokens }
  return [
    { type: 'message_start', index: 0, delta: {} },
    { type: 'content_block_start', index: 0, delta: { block: 'text' } },
    { type: 'text_delta', index: 0, delta: { text: 'null' } },
    { type: 'content_block_stop', index: 0, delta: {} },
    { type: 'message_stop', index: 0, delta: { stopReason: 'end_turn', usage } },
  ]
}

async function count(bound: BoundLLMModel, request: LLMRequest): Promise<number> {
  const { provider, wire } = bound
  // Many vendors use Chat Completions and Responses but few can count, so these counters are found by format
  // and vendor.
  const write = counters[`${wire} ${provider}`] ?? counters[wire ?? '']
  if (!write || !bound.encode || !bound.send)
    throw unavailable(
      provider,
      'counts tokens',
      wire === 'openai-chat' && provider === 'openai'
        ? "OpenAI counts for Responses: leave out { api: 'chat' }."
        : 'Estimate: a token is about four characters of English text.',
    )
  const { path, body } = bound.encode(request)
  const { config, signal, clock } = request
  const newBody = write(JSON.parse(body) as JsonObject, path)
  const answer = await bound.send({ ...newBody, config, signal, clock })
  const fields = isPlainObject(answer) ? answer : {}
  const data = isPlainObject(fields['data']) ? fields['data'] : fields
  const tokens = data['input_tokens'] ?? data['totalTokens'] ?? data['total_tokens']
  if (typeof tokens === 'number') return tokens
  throw new UPPError(`${provider} did not say how many tokens it counted.`, {
    code: ErrorCode.InvalidResponse,
    provider,
    modality: 'llm',
  })
}

/** Turns the body of a request into the body of a request that counts its tokens. */
type CountRequest = (body: JsonObject, path: string) => { path: string; body: JsonObject }

const counters: Readonly<Record<string, CountRequest>> = {
  // The fields of `MessageCountTokensParams` in @anthropic-ai/sdk 1.10.0, those of the beta API included.
  'anthropic-messages': (body) => ({
    path: '/messages/count_tokens',
    body: only(
      body,
      `model messages system tools tool_choice thinking output_config cache_control speed mcp_servers
      context_management`,
    ),
  }),
  // openai 7.55.0, `InputTokenCountParams`.
  'openai-responses openai': (body) => ({
    path: '/responses/input_tokens',
    body: only(
      body,
      `model input instructions tools tool_choice text reasoning parallel_tool_calls truncation
      previous_response_id conversation personality`,
    ),
  }),
  // ai.google.dev/api/tokens: the whole request, with its model.
  'google-generate': (body, path) => {
    const resource = path.slice(1, path.lastIndexOf(':'))
    return {
      path: `/${resource}:countTokens`,
      body: { generateContentRequest: { model: decodeURIComponent(resource), ...body } },
    }
  },
  // docs.cloud.google.com/vertex-ai: `countTokens` of Gemini, and the model `count-tokens` of Claude.
  'google-generate vertex': (body, path) => ({
    path: path.replace(/:\w+$/, ':countTokens'),
    body: only(body, 'contents systemInstruction tools generationConfig'),
  }),
  'anthropic-messages vertex': (body, path) => ({
    path: '/models/count-tokens:rawPredict',
    body: {
      ...only(body, 'messages system tools tool_choice thinking anthropic_version'),
      model: decodeURIComponent(path.slice('/models/'.length, path.lastIndexOf(':'))),
    },
  }),
  // platform.moonshot.ai/docs/api/estimate: the messages alone.
  'openai-chat moonshot': (body) => ({
    path: '/tokenizers/estimate-token-count',
    body: only(body, 'model messages'),
  }),
}

function only(body: JsonObject, names: string): JsonObject {
  const nameSet = new Set(names.split(/\s+/))
  return Object.fromEntries(Object.entries(body).filter(([name]) => nameSet.has(name)))
}

function unavailable(provider: string, what: string, hint?: string): UPPError {
  return invalidRequest(
    `${provider} has no endpoint that ${what}.`,
    { provider, modality: 'llm' },
    hint ?? 'Use the provider of one vendor; a fallback or a scripted model has none.',
  )
}
