import { isPlainObject, type JsonObject, type JsonValue } from '@skein/base'
import type { ProviderMetadata } from '../contract/content.ts'
import type { RequestScope, Settings } from '../contract/provider.ts'
import { isEmpty, objectOf, textOf, without } from '../wires/read-json.ts'
import type { AiSdkMetadata, AiSdkWarning } from './types.ts'

/** The provider names of this package that a key of `providerOptions` may mean; other keys mean themselves. */
const aliases: Readonly<Record<string, readonly string[]>> = {
  openai: ['openai', 'azure-openai'],
  azure: ['azure-openai'],
  vertex: ['google'],
  googleVertex: ['google'],
  moonshotai: ['moonshot'],
}

/** The options of a call, as changes for the models of the vendor that they are for. */
export interface TranslatedOptions {
  readonly scopes: readonly RequestScope[]
  readonly settings: Pick<Settings, 'parallelToolCalls'>
  readonly warnings: readonly AiSdkWarning[]
}

/**
 * Translates the `providerOptions` of a call. The AI SDK has its own names for what vendors call differently; what has
 * no place in a vendor's request is a warning if the model is of that vendor, or may be.
 */
export function translateOptions(
  options: AiSdkMetadata,
  model: { readonly provider: string; readonly wire?: string },
): TranslatedOptions {
  const scopes: RequestScope[] = []
  const warnings: AiSdkWarning[] = []
  for (const [key, given] of Object.entries(options))
    for (const provider of aliases[key] ?? [key]) {
      // Options of other vendors are for other models, which the same call may be sent to.
      if (model.wire !== undefined && provider !== model.provider) continue
      const { own, unsupported } = readOptions(provider, given)
      scopes.push(...own.map((scope) => ({ provider, ...scope })))
      if (provider !== (aliases[key] ?? [key])[0] && model.wire === undefined) continue
      for (const name of unsupported)
        warnings.push({
          type: 'unsupported',
          feature: `providerOptions.${key}.${name}`,
          details: `${provider} has no such parameter; it was not sent.`,
        })
    }
  const isAlone = options['anthropic']?.['disableParallelToolUse'] === true
  const isForModel = model.wire === undefined || model.provider === 'anthropic'
  const settings = isAlone && isForModel ? { parallelToolCalls: false } : {}
  return { scopes, settings, warnings }
}

/** Options that tell the AI SDK's provider how to work, and are no parameters of a vendor. */
const internal = new Set([
  'allowedTools',
  'compactionTrigger',
  'forceReasoning',
  'includePings',
  'includeWebSearchSources',
  'passThroughUnsupportedFiles',
  'reasoningEffortUpdate',
  'sendReasoning',
  'strictJsonSchema',
  'structuredOutputMode',
  'structuredOutputs',
  'systemMessageMode',
  'toolStreaming',
])

interface OwnOptions {
  readonly own: readonly Omit<RequestScope, 'provider'>[]
  readonly unsupported: readonly string[]
}

function readOptions(provider: string, given: JsonObject): OwnOptions {
  const internalNames = Object.keys(given).filter((name) => internal.has(name))
  const options = without(given, internal)
  return { own: scopesOf(provider, options), unsupported: internalNames }
}

function scopesOf(
  provider: string,
  options: JsonObject,
): readonly Omit<RequestScope, 'provider'>[] {
  switch (provider) {
    case 'anthropic':
      return [anthropicScope(options)]
    case 'openai':
    case 'azure-openai':
      return [
        { wire: 'openai-responses', params: responsesParams(options) },
        { wire: 'openai-chat', params: chatParams(options) },
      ]
    case 'google':
      return [{ params: options }] // Google's own names are camelCase, too
    default:
      return [{ params: snakeKeys(options) }]
  }
}

function anthropicScope(options: JsonObject): Omit<RequestScope, 'provider'> {
  const { effort, taskBudget, disableParallelToolUse: _, anthropicBeta, ...rest } = options
  const output = present({ effort, task_budget: taskBudget })
  const params: Record<string, JsonValue | undefined> = { ...snakeKeys(rest) }
  if (!isEmpty(output)) params['output_config'] = output
  const betas = Array.isArray(anthropicBeta) ? anthropicBeta.join(',') : ''
  return betas === '' ? { params } : { params, headers: { 'anthropic-beta': betas } }
}

/** Writes OpenAI's options for Responses, which groups some of them. */
function responsesParams(options: JsonObject): JsonObject {
  const { reasoningEffort, reasoningSummary, reasoningMode, reasoningContext, ...others } = options
  const { textVerbosity, logprobs, ...rest } = others
  const reasoning = present({
    effort: reasoningEffort,
    summary: reasoningSummary,
    mode: reasoningMode,
    context: reasoningContext,
  })
  const params: Record<string, JsonValue | undefined> = { ...snakeKeys(rest) }
  if (!isEmpty(reasoning)) params['reasoning'] = reasoning
  if (textVerbosity !== undefined) params['text'] = { verbosity: textVerbosity }
  if (typeof logprobs === 'number') params['top_logprobs'] = logprobs
  return params
}

function chatParams(options: JsonObject): JsonObject {
  const { textVerbosity, logprobs, ...rest } = options
  const params: Record<string, JsonValue | undefined> = { ...snakeKeys(rest) }
  if (textVerbosity !== undefined) params['verbosity'] = textVerbosity
  if (logprobs !== undefined) params['logprobs'] = logprobs !== false
  if (typeof logprobs === 'number') params['top_logprobs'] = logprobs
  return params
}

/** Writes names such as `cacheControl` as `cache_control`, at every depth. Names that are data stay as they are. */
function snakeKeys(options: JsonObject): JsonObject {
  const entries = Object.entries(options).map(([name, value]) => [
    snake(name),
    data.has(name) ? value : snakeValue(value),
  ])
  return Object.fromEntries(entries) as JsonObject
}

/** Options whose members have names that the caller chose. */
const data = new Set(['metadata', 'logitBias', 'headers', 'classifierContext'])

function snakeValue(value: JsonValue | undefined): JsonValue | undefined {
  if (Array.isArray(value)) return value.map((item: JsonValue) => snakeValue(item) ?? null)
  return isPlainObject(value) ? snakeKeys(value as JsonObject) : value
}

function snake(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}

/** The kinds of parts, as far as their options differ. */
type PartKind = 'reasoning' | 'other'

/**
 * Translates the `providerOptions` of a part or message to metadata of this package. Metadata that this package gave to
 * the AI SDK come back unchanged; signatures of the AI SDK's own providers become those that the vendor sent.
 */
export function toMetadata(
  options: AiSdkMetadata | undefined,
  model: { readonly provider: string },
  part: { readonly kind?: PartKind; readonly text?: string } = {},
): ProviderMetadata | undefined {
  const entries = Object.entries(options ?? {}).flatMap(([key, given]): [string, JsonObject][] => {
    const names = aliases[key] ?? [key]
    const provider = names.includes(model.provider) ? model.provider : names[0]!
    const own = partOptions(provider, given, part)
    return isEmpty(own) ? [] : [[provider, own]]
  })
  return entries.length > 0 ? Object.fromEntries(entries) : undefined
}

function partOptions(
  provider: string,
  given: JsonObject,
  { kind = 'other', text = '' }: { readonly kind?: PartKind; readonly text?: string },
): JsonObject {
  if ('api' in given) return without(given, shown)
  switch (provider) {
    case 'anthropic': {
      const { signature, redactedData, ...rest } = given
      if (kind !== 'reasoning') return withUserId(snakeKeys(rest))
      const native = textOf(redactedData)
        ? { type: 'redacted_thinking', data: redactedData }
        : { type: 'thinking', signature }
      return { api: 'anthropic-messages', native }
    }
    case 'openai':
    case 'azure-openai': {
      const { itemId, reasoningEncryptedContent, imageDetail, ...rest } = given
      if (kind === 'reasoning' && textOf(itemId)) {
        const summary = text === '' ? [] : [{ type: 'summary_text', text }]
        const encrypted_content = reasoningEncryptedContent ?? undefined
        const native = { type: 'reasoning', id: itemId, summary, encrypted_content }
        return { api: 'openai-responses', native }
      }
      return present({ ...snakeKeys(without(rest, itemFields)), detail: imageDetail })
    }
    case 'google': {
      const { thoughtSignature, ...rest } = given
      return thoughtSignature === undefined
        ? rest
        : { ...rest, api: 'google-generate', native: { thoughtSignature } }
    }
    default:
      return given
  }
}

/** What OpenAI's provider of the AI SDK remembers about an answer and sends in no field of its own. */
const itemFields = new Set(['annotations', 'logprobs', 'phase', 'reasoning'])

function withUserId(options: JsonObject): JsonObject {
  const { containerUpload: _, container_upload: __, ...rest } = options
  return rest
}

/** Fields that `toProviderMetadata` adds for readers that know the AI SDK's own providers. */
const shown = new Set(['signature', 'redactedData', 'thoughtSignature'])

/** Returns metadata for the AI SDK: this package's own, and the signatures under the names of the AI SDK's providers. */
export function toProviderMetadata(
  metadata: ProviderMetadata | undefined,
): AiSdkMetadata | undefined {
  if (!metadata) return undefined
  return Object.fromEntries(
    Object.entries(metadata).map(([provider, own]) => {
      const native = objectOf(own['native']) ?? {}
      const { signature, thoughtSignature } = native
      const redactedData = native['type'] === 'redacted_thinking' ? native['data'] : undefined
      return [provider, { ...own, ...present({ signature, thoughtSignature, redactedData }) }]
    }),
  )
}

function present(fields: Readonly<Record<string, JsonValue | undefined>>): JsonObject {
  const entries = Object.entries(fields).filter(([, value]) => value !== undefined && value !== null) // prettier-ignore
  return Object.fromEntries(entries) as JsonObject
}
