import type { JsonObject } from '@skein/base'
import type { ProviderMetadata } from '../contract/content.ts'
import { ErrorCode, UPPError, type UPPErrorOptions } from '../contract/error.ts'
import type { StopReason, StreamEvent } from '../contract/event.ts'
import type { LLMRequest } from '../contract/provider.ts'
import type { TokenUsage } from '../contract/turn.ts'

/** One thing a scripted model does while it answers. */
export type ScriptPart =
  | {
      readonly do: 'text' | 'reasoning'
      readonly text: string
      readonly metadata?: ProviderMetadata
    }
  | {
      readonly do: 'call'
      readonly toolName: string
      /** A string is sent as it stands, so that it may be malformed. */
      readonly arguments: JsonObject | string
      readonly toolCallId?: string
      readonly metadata?: ProviderMetadata
    }
  | { readonly do: 'wait'; readonly ms: number }
  | { readonly do: 'fail'; readonly error: unknown }
  | { readonly do: 'emit'; readonly events: readonly StreamEvent[] }
  | {
      readonly do: 'stop'
      readonly stopReason?: StopReason
      readonly usage?: Partial<TokenUsage>
      readonly metadata?: ProviderMetadata
      /** Ends the answer without its `message_stop`. */
      readonly cut?: boolean
    }

/** One answer of the model: a part, several, or a function of the request that gives them. */
export type ScriptStep = ScriptPart | readonly ScriptPart[] | ScriptFunction
export type ScriptFunction = (
  request: LLMRequest,
  /** How many requests came before. */
  index: number,
) => ScriptPart | readonly ScriptPart[] | Promise<ScriptPart | readonly ScriptPart[]>

/** The model says a text. */
export function says(text: string, options: { metadata?: ProviderMetadata } = {}): ScriptPart {
  return { do: 'text', text, ...options }
}

/** The model reasons aloud. */
export function reasons(text: string, options: { metadata?: ProviderMetadata } = {}): ScriptPart {
  return { do: 'reasoning', text, ...options }
}

/** The model calls a tool. Arguments given as a string are sent as they stand, well-formed or not. */
export function calls(
  toolName: string,
  args: JsonObject | string = {},
  { id, metadata }: { id?: string; metadata?: ProviderMetadata } = {},
): ScriptPart {
  return {
    do: 'call',
    toolName,
    arguments: args,
    ...(id !== undefined && { toolCallId: id }),
    ...(metadata && { metadata }),
  }
}

/** The request fails here: with your error, or with a `UPPError` made from a message or options. */
export function fails(
  error: string | Error | ({ readonly message?: string } & Partial<UPPErrorOptions>) = {},
): ScriptPart {
  if (error instanceof Error) return { do: 'fail', error }
  const { message = 'The script says that this request fails.', ...options } =
    typeof error === 'string' ? { message: error } : error
  return {
    do: 'fail',
    error: new UPPError(message, {
      code: ErrorCode.ProviderError,
      provider: 'scripted',
      modality: 'llm',
      ...options,
    }),
  }
}

/** Nothing comes for a while; `Infinity` waits until the request is aborted. */
export function waits(ms: number): ScriptPart {
  return { do: 'wait', ms }
}

/** Events of your own. With a `message_start` among them, no framing events are added. */
export function emits(...events: readonly StreamEvent[]): ScriptPart {
  return { do: 'emit', events }
}

/** How the answer ends: stop reason, usage, metadata of the message. */
export function stops(
  stopReason?: StopReason,
  options: { usage?: Partial<TokenUsage>; metadata?: ProviderMetadata } = {},
): ScriptPart {
  return { do: 'stop', ...(stopReason && { stopReason }), ...options }
}

/** The stream ends here, without its terminal event. */
export function cuts(): ScriptPart {
  return { do: 'stop', cut: true }
}
