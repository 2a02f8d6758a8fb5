import { ErrorCode, UPPError, type LLMRequest, type StreamEvent } from '@skein/ai'
import { modelCatalog } from '@skein/ai/catalog'
import { zeroUsage } from '@skein/ai/engine'
import { findModel, tokenCost } from '@skein/ai/middleware'
import { NANO, type SpendingAccount, type Amounts } from './spending-account.ts'
import { tellsCost } from '../definitions/load/check-budgets.ts'
import type { ResolvedModel, ResolvedSide } from '../definitions/resolved.ts'
import { estimateViewTokens } from '../model/message-text.ts'

/** The number of output tokens that is reserved when neither the request nor the catalog of models has a limit. */
const DEFAULT_OUTPUT_TOKENS = 8192

/**
 * Estimates the most that an inference can cost: one token per three characters of input, and the
 * largest output that the request or the model allows. If only the vendor knows the price of the model,
 * the whole limit is reserved, so that inferences of that model run one after the other.
 */
export function highestCost(
  { max }: SpendingAccount,
  {
    side,
    model,
    request,
    inputTokens,
  }: {
    readonly side: ResolvedSide
    readonly model: ResolvedModel
    readonly request: LLMRequest
    readonly inputTokens: number
  },
): Amounts {
  const outputTokens = outputTokensOf(request, model)
  const totalTokens = inputTokens + outputTokens
  const cost =
    model.price && tokenCost({ ...zeroUsage, inputTokens, outputTokens, totalTokens }, model.price)
  if (cost === undefined && max.nanoUsd !== undefined && !tellsCost(side, model)) {
    const { provider, modelId } = model.model
    throw new UPPError(
      `The price of ${provider.name}/${modelId} is not known, and spending is limited.`,
      {
        code: ErrorCode.InvalidRequest,
        provider: provider.name,
        modality: 'llm',
        hint: 'Give inputPrice and outputPrice to defineModel, or the option prices to createRuntime.',
      },
    )
  }
  const nanoUsd = cost === undefined ? (max.nanoUsd ?? 0) : Math.ceil(cost * NANO)
  return { nanoUsd, tokens: totalTokens, inferences: 1 }
}

/** Estimates the tokens of a request that has not been sent. */
export function inputTokensOf({ messages, system = '', tools }: LLMRequest): number {
  const rest = tools.map(({ name, description, parameters }) => [name, description, parameters])
  const others = (system.length + JSON.stringify(rest).length) / 3
  return Math.ceil((estimateViewTokens(messages) * 4) / 3 + others)
}

/** The parameters by which vendors limit the tokens of an answer. */
const OUTPUT_PARAMS = [
  'max_tokens',
  'max_completion_tokens',
  'max_output_tokens',
  'maxOutputTokens',
]

function outputTokensOf(
  { params, settings }: LLMRequest,
  { model, definition }: ResolvedModel,
): number {
  const { generationConfig } = params as {
    readonly generationConfig?: Readonly<Record<string, unknown>>
  }
  for (const source of [params, generationConfig ?? {}, settings ?? {}])
    for (const name of OUTPUT_PARAMS) {
      const value = (source as Readonly<Record<string, unknown>>)[name]
      if (typeof value === 'number' && value > 0) return value
    }
  const { provider, modelId } = model
  const modelLimit = findModel(modelCatalog, provider.name, modelId)?.limits?.outputTokens
  return definition?.capabilities?.maxOutputTokens ?? modelLimit ?? DEFAULT_OUTPUT_TOKENS
}

/** The number of characters that an event adds to the output. */
export function lengthOf({ delta }: StreamEvent): number {
  const { text = '', argumentsJson = '' } = delta as {
    readonly text?: string
    readonly argumentsJson?: string
  }
  return text.length + argumentsJson.length
}
