import {
  type BoundLLMModel,
  createProvider,
  ErrorCode,
  type LLMRequest,
  type ModelReference,
  type StreamEvent,
  type TokenUsage,
  UPPError,
} from '@skein/ai'
import { isObject, type JsonObject, type MessageJSON } from '@skein/base'
import { madeBy } from '../recorded/read-recording.ts'
import type { RecordedAnswer } from '../recorded/recorded-thread.ts'

/** PlayedAnswers the requests of one model. */
export type Answering = (
  request: LLMRequest,
  model: { readonly reference: ModelReference; readonly provider: string; readonly model: string },
) => AsyncIterable<readonly StreamEvent[]>

/** A model with the name of another one, whose requests a function answers. */
export function answeredModel(reference: ModelReference, answering: Answering): ModelReference {
  const name = reference.provider.name
  const model = { reference, provider: name, model: reference.modelId }
  const stream = (request: LLMRequest): AsyncIterable<readonly StreamEvent[]> =>
    answering(request, model)
  const provider = createProvider({
    name,
    llm: {
      capabilities: handlerOf(reference).capabilities,
      bind: ({ modelId }) => ({
        ...formatOf(reference),
        modelId,
        provider: name,
        async *stream(request) {
          yield* stream(request)
        },
        async complete(request) {
          const events: StreamEvent[] = []
          for await (const batch of stream(request)) events.push(...batch)
          return events
        },
      }),
    },
  })
  return provider(reference.modelId, reference.options)
}

function handlerOf({ provider }: ModelReference) {
  return provider.handlers.llm! // a model of a prompt answers with text
}

/** What decides how a model's requests are written and its answers are read. */
function formatOf(
  reference: ModelReference,
): Pick<BoundLLMModel, 'capabilities' | 'wire' | 'readData'> {
  const bound = handlerOf(reference).bind(reference)
  const { capabilities, wire } = bound
  return {
    capabilities,
    ...(wire !== undefined && { wire }),
    ...(bound.readData && { readData: bound.readData.bind(bound) }),
  }
}

/** The events with which a model gives a recorded answer. */
export function eventsOfAnswer(
  answer: Extract<RecordedAnswer, { type: 'message' }>,
): StreamEvent[] {
  const { message, stopReason, usage } = answer
  const { metadata } = message as { readonly metadata?: unknown } // what a vendor had sent
  return [
    { type: 'message_start', index: 0, delta: {} } as StreamEvent,
    ...contentEvents(message),
    {
      type: 'message_stop',
      index: 0,
      delta: {
        stopReason,
        usage: tokensOf(usage),
        ...(metadata !== undefined && { metadata: metadata as JsonObject }),
      },
    } as StreamEvent,
  ]
}

/** The tokens of an answer, with the cost that was recorded: prices change. */
export function tokensOf({
  inputTokens,
  outputTokens,
  cachedTokens,
  cacheWriteTokens = 0,
  reasoningTokens,
  costUsd,
}: NonNullable<Extract<RecordedAnswer, { type: 'message' }>['usage']>): TokenUsage {
  return {
    inputTokens,
    outputTokens,
    totalTokens: inputTokens + outputTokens,
    cacheReadTokens: cachedTokens,
    cacheWriteTokens,
    ...(reasoningTokens !== undefined && { reasoningTokens }),
    ...(costUsd !== null && { costUsd }),
  }
}

function contentEvents(message: MessageJSON): StreamEvent[] {
  const events: StreamEvent[] = []
  let index = 0
  const blocks = Array.isArray(message.content) ? message.content : []
  for (const block of blocks as readonly JsonObject[]) {
    const { type, text = '', metadata } = block
    const stop = {
      type: 'content_block_stop',
      index,
      delta: isObject(metadata) ? { metadata } : {},
    }
    if (type === 'text' || type === 'reasoning') {
      events.push(
        { type: 'content_block_start', index, delta: { block: type } } as StreamEvent,
        {
          type: type === 'text' ? 'text_delta' : 'reasoning_delta',
          index,
          delta: { text: String(text) },
        } as StreamEvent,
        stop as StreamEvent,
      )
      index++
    }
  }
  for (const call of madeBy(message)) {
    const { toolCallId, toolName } = call
    const { metadata, invalidArguments } = call as {
      readonly metadata?: JsonObject
      readonly invalidArguments?: { readonly text: string }
    }
    const argumentsJson = invalidArguments?.text ?? JSON.stringify(call.arguments)
    events.push(
      {
        type: 'content_block_start',
        index,
        delta: { block: 'tool_call', toolCallId, toolName },
      } as StreamEvent,
      { type: 'tool_call_delta', index, delta: { toolCallId, toolName, argumentsJson } },
      { type: 'content_block_stop', index, delta: metadata ? { metadata } : {} } as StreamEvent,
    )
    index++
  }
  return events
}

/** The error with which a recorded request failed. */
export function recordedFailure(
  {
    code,
    message,
    hint,
  }: Omit<Extract<RecordedAnswer, { type: 'failure' }>, 'type' | 'durationMs'>,
  provider: string,
): UPPError {
  return new UPPError(message, {
    code: code as ErrorCode, // the log has the code of such an error
    provider,
    modality: 'llm',
    hint,
  })
}

/** The error of a request that was aborted. */
export function abortedRequest(provider: string, cause: unknown): UPPError {
  return new UPPError('The request was cancelled.', {
    code: ErrorCode.Cancelled,
    provider,
    modality: 'llm',
    cause,
  })
}
