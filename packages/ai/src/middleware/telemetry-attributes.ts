import { isPlainObject } from '@skein/base'
import type { EmbeddingResult } from '../embedding.ts'
import type { ImageResult } from '../image.ts'
import type { AnyRequest, MiddlewareContext } from '../middleware.ts'
import type { Params } from '../provider.ts'
import type { Tool, ToolCall } from '../tool.ts'
import type { TokenUsage } from '../usage.ts'
import type { SpanAttributes } from './tracer.ts'

/** The conventions' names of vendors, where they are not ours. */
const providerNames: Readonly<Record<string, string>> = {
  google: 'gcp.gemini',
  'azure-openai': 'azure.ai.openai',
  xai: 'x_ai',
  mistral: 'mistral_ai',
}

export function providerName(provider: string): string {
  return providerNames[provider] ?? provider
}

/** What is known when the span starts. */
export function requestAttributes(
  operation: string,
  request: AnyRequest,
  { provider, modelId, streaming }: MiddlewareContext,
): SpanAttributes {
  return {
    'gen_ai.operation.name': operation,
    'gen_ai.provider.name': providerName(provider),
    'gen_ai.request.model': modelId,
    ...(streaming && { 'gen_ai.request.stream': true }),
    ...('structure' in request && request.structure && { 'gen_ai.output.type': 'json' }),
    ...(operation === 'generate_content' && { 'gen_ai.output.type': 'image' }),
    ...paramAttributes(request.params),
    ...serverAttributes(request.config.baseUrl),
  }
}

/** The vendors' names of the parameters that the conventions know. */
const paramNames: Readonly<Record<string, readonly string[]>> = {
  temperature: ['temperature'],
  top_p: ['top_p', 'topP'],
  top_k: ['top_k', 'topK'],
  max_tokens: [
    'max_tokens',
    'max_completion_tokens',
    'max_output_tokens',
    'maxOutputTokens',
    'num_predict',
  ],
  frequency_penalty: ['frequency_penalty', 'frequencyPenalty'],
  presence_penalty: ['presence_penalty', 'presencePenalty'],
  seed: ['seed'],
  'choice.count': ['n', 'candidateCount'],
  stop_sequences: ['stop_sequences', 'stop', 'stopSequences'],
}

function paramAttributes(params: Params): SpanAttributes {
  // Google and Ollama keep them one level down.
  const places = [params, params['generationConfig'], params['options']].filter(isPlainObject)
  const attributes: SpanAttributes = {}
  for (const [attribute, names] of Object.entries(paramNames)) {
    const found = places.flatMap((place) => names.map((name) => place[name]))
    const value = attribute === 'stop_sequences' ? texts(found) : found.find(isNumber)
    if (value !== undefined) attributes[`gen_ai.request.${attribute}`] = value
  }
  return attributes
}

function isNumber(value: unknown): value is number {
  return typeof value === 'number'
}

function texts(found: readonly unknown[]): string[] | undefined {
  const given = found.find((value) => value !== undefined)
  const list = (Array.isArray(given) ? given : [given]).filter((item) => typeof item === 'string')
  return list.length > 0 ? list : undefined
}

function serverAttributes(baseUrl: string | undefined): SpanAttributes {
  if (baseUrl === undefined || !URL.canParse(baseUrl)) return {}
  const { hostname, port, protocol } = new URL(baseUrl)
  const standard = protocol === 'http:' ? 80 : 443
  return { 'server.address': hostname, 'server.port': port === '' ? standard : Number(port) }
}

export function usageAttributes(usage: TokenUsage): SpanAttributes {
  const { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens, reasoningTokens } = usage
  return {
    'gen_ai.usage.input_tokens': inputTokens,
    'gen_ai.usage.output_tokens': outputTokens,
    'gen_ai.usage.cache_read.input_tokens': cacheReadTokens,
    'gen_ai.usage.cache_creation.input_tokens': cacheWriteTokens,
    ...(reasoningTokens !== undefined && {
      'gen_ai.usage.reasoning.output_tokens': reasoningTokens,
    }),
  }
}

/** What is known when a call for embeddings or images has ended. */
export function resultAttributes(result: EmbeddingResult | ImageResult): SpanAttributes {
  if ('embeddings' in result) {
    const dimensions = result.embeddings[0]?.dimensions
    return {
      'gen_ai.usage.input_tokens': result.usage.totalTokens,
      ...(dimensions !== undefined && { 'gen_ai.embeddings.dimension.count': dimensions }),
    }
  }
  const { inputTokens, outputTokens } = result.usage ?? {}
  return {
    ...(inputTokens !== undefined && { 'gen_ai.usage.input_tokens': inputTokens }),
    ...(outputTokens !== undefined && { 'gen_ai.usage.output_tokens': outputTokens }),
  }
}

export function toolAttributes(call: ToolCall, tool: Tool | undefined): SpanAttributes {
  return {
    'gen_ai.operation.name': 'execute_tool',
    'gen_ai.tool.name': call.toolName,
    'gen_ai.tool.call.id': call.toolCallId,
    'gen_ai.tool.type': 'function',
    ...(tool?.description && { 'gen_ai.tool.description': tool.description }),
  }
}
