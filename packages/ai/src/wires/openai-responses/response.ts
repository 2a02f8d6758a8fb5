import { ErrorCode, type UPPError } from '../../contract/error.ts'
import { StopReason } from '../../contract/event.ts'
import type { JsonObject } from '@skein/base'
import { readErrorBody } from '../openai-error.ts'
import { objectOf, textOf, without } from '../read-json.ts'
import { vendorFailure } from '../wire-error.ts'

/** Fields of a response that only repeat the request, or that UPP holds elsewhere. */
const leftOut = new Set(
  `object output output_text usage error created_at completed_at background instructions tools
  tool_choice text temperature top_p top_logprobs presence_penalty frequency_penalty truncation
  parallel_tool_calls max_output_tokens max_tool_calls reasoning prompt input user metadata
  prompt_cache_key prompt_cache_retention prompt_cache_options safety_identifier billing image`.split(
    /\s+/,
  ),
)

/** What the message keeps of its response: id, model, status, `store`, and whatever is new. */
export function responseMetadata(response: JsonObject): JsonObject {
  return { api: 'openai-responses', ...without(response, leftOut) }
}

const incompleteReasons: ReadonlyMap<string, StopReason> = new Map([
  ['max_output_tokens', StopReason.MaxTokens],
  ['content_filter', StopReason.ContentFilter],
])

export interface ResponseEnd {
  readonly stopReason: StopReason
  readonly rawStopReason: string
}

/** How a response ended. Statuses that are not an end (`queued`) are told as they are. */
export function endOf(
  response: JsonObject,
  { hasCalls, hasRefusal }: { hasCalls: boolean; hasRefusal: boolean },
): ResponseEnd {
  const status = textOf(response['status']) ?? 'completed'
  if (status === 'incomplete') {
    const reason = textOf(objectOf(response['incomplete_details'])?.['reason']) ?? status
    return {
      stopReason: incompleteReasons.get(reason) ?? StopReason.Other,
      rawStopReason: reason,
    }
  }
  if (status !== 'completed') return { stopReason: StopReason.Other, rawStopReason: status }
  if (hasCalls) return { stopReason: StopReason.ToolUse, rawStopReason: status }
  const stopReason = hasRefusal ? StopReason.Refusal : StopReason.EndTurn
  return { stopReason, rawStopReason: status }
}

/** The error of a response that failed or was cancelled at the vendor; undefined for others. */
export function failureOf(response: JsonObject, provider: string): UPPError | undefined {
  const status = response['status']
  if (status === 'cancelled') {
    return vendorFailure(provider, {
      message: `${provider} cancelled the response ${textOf(response['id']) ?? ''}.`,
      code: ErrorCode.Cancelled,
    })
  }
  const error = objectOf(response['error'])
  if (status !== 'failed' && !error) return undefined
  const message = 'The response failed, and the vendor gave no reason.'
  return vendorFailure(provider, readErrorBody({ error: error ?? { message } }) ?? { message })
}
