/**
 * An event of AG-UI 1.0. Events that are not part of a conversation have the type `AgUiOtherEvent` and are
 * kept whole.
 */
export type AgUiEvent = AgUiKnownEvent | AgUiOtherEvent

/** The version of the protocol that is written here. */
export const AG_UI_VERSION = '1.0'

/** Data of the application or of a framework, by name. Ours is under `threadprotocol`. */
export type AgUiMetadata = Readonly<Record<string, unknown>>

interface Base<Type extends string> {
  readonly type: Type
  /** Milliseconds since 1970. */
  readonly timestamp?: number
  readonly metadata?: AgUiMetadata
}

/** A file or text in a message. */
export type AgUiContentPart =
  | { readonly type: 'text'; readonly text: string }
  | {
      readonly type: 'image' | 'audio' | 'video' | 'document'
      readonly source:
        | { readonly type: 'data'; readonly value: string; readonly mimeType: string }
        | { readonly type: 'url'; readonly value: string; readonly mimeType?: string }
    }

/** A message as clients hold it. Which fields it has depends on its role. */
export interface AgUiMessage {
  readonly id: string
  readonly role: AgUiRole | 'tool' | 'reasoning' | 'activity'
  readonly content?: string | readonly AgUiContentPart[]
  readonly name?: string
  readonly toolCalls?: readonly AgUiToolCall[]
  /** On a result: the call that it answers. */
  readonly toolCallId?: string
  /** On a result: why the call failed. */
  readonly error?: string
  readonly encryptedValue?: string
  readonly metadata?: AgUiMetadata
}

/** A call in an assistant message; the arguments are JSON text. */
export interface AgUiToolCall {
  readonly id: string
  readonly type: 'function'
  readonly function: { readonly name: string; readonly arguments: string }
}

/** The request that started a run, as far as an event repeats it. */
export interface AgUiInput {
  readonly threadId: string
  readonly runId: string
  readonly messages: readonly AgUiMessage[]
  readonly [field: string]: unknown
}

/** Tokens that a run used, for one model. */
export interface AgUiUsage {
  readonly provider?: string
  readonly model?: string
  readonly inputTokens?: number
  readonly outputTokens?: number
  readonly totalTokens?: number
  readonly reasoningTokens?: number
  readonly cachedInputTokens?: number
  readonly cacheWriteInputTokens?: number
}

/** The sender of an AG-UI text message. */
export type AgUiRole = 'user' | 'assistant' | 'system' | 'developer'

/** The AG-UI events that a thread can be converted to and from. */
export type AgUiKnownEvent =
  | (Base<'RUN_STARTED'> & {
      readonly threadId: string
      readonly runId: string
      readonly parentRunId?: string
      readonly protocolVersion?: string
      /** The request that the run answers; `messages` has the person's messages. */
      readonly input?: AgUiInput
    })
  | (Base<'MESSAGES_SNAPSHOT'> & { readonly messages: readonly AgUiMessage[] })
  | (Base<'RUN_FINISHED'> & {
      readonly threadId: string
      readonly runId: string
      readonly result?: unknown
      readonly outcome?: AgUiOutcome
      readonly usage?: readonly AgUiUsage[]
    })
  | (Base<'RUN_ERROR'> & {
      readonly message: string
      readonly code?: string
      readonly usage?: readonly AgUiUsage[]
    })
  | (Base<'STEP_STARTED' | 'STEP_FINISHED'> & { readonly stepName: string })
  | (Base<'TEXT_MESSAGE_START'> & {
      readonly messageId: string
      readonly role?: AgUiRole
      readonly name?: string
    })
  | (Base<'TEXT_MESSAGE_CONTENT'> & { readonly messageId: string; readonly delta: string })
  | (Base<'TEXT_MESSAGE_END'> & { readonly messageId: string })
  | (Base<'TEXT_MESSAGE_CHUNK'> & {
      readonly messageId?: string
      readonly role?: AgUiRole
      readonly delta?: string
      readonly name?: string
    })
  | (Base<'REASONING_START' | 'REASONING_END' | 'REASONING_MESSAGE_END'> & {
      readonly messageId: string
    })
  | (Base<'REASONING_MESSAGE_START'> & { readonly messageId: string; readonly role: 'reasoning' })
  | (Base<'REASONING_MESSAGE_CONTENT'> & { readonly messageId: string; readonly delta: string })
  | (Base<'REASONING_MESSAGE_CHUNK'> & { readonly messageId?: string; readonly delta?: string })
  | (Base<'REASONING_ENCRYPTED_VALUE'> & {
      readonly subtype: 'message' | 'tool-call'
      readonly entityId: string
      readonly encryptedValue: string
    })
  | (Base<'TOOL_CALL_START'> & {
      readonly toolCallId: string
      readonly toolCallName: string
      readonly parentMessageId?: string
    })
  | (Base<'TOOL_CALL_ARGS'> & { readonly toolCallId: string; readonly delta: string })
  | (Base<'TOOL_CALL_END'> & { readonly toolCallId: string })
  | (Base<'TOOL_CALL_CHUNK'> & {
      readonly toolCallId?: string
      readonly toolCallName?: string
      readonly parentMessageId?: string
      readonly delta?: string
    })
  | (Base<'TOOL_CALL_RESULT'> & {
      readonly messageId: string
      readonly toolCallId: string
      readonly content: string | readonly AgUiContentPart[]
      readonly role?: 'tool'
    })
  | (Base<'CUSTOM'> & { readonly name: string; readonly value: unknown })

/** How a run of AG-UI ended. */
export type AgUiOutcome =
  | { readonly type: 'success'; readonly pendingToolCallIds?: readonly string[] }
  | { readonly type: 'interrupt'; readonly interrupts: readonly AgUiInterrupt[] }
  | { readonly type: 'cancelled' }

/** Something that a run of AG-UI waits for: an open tool call, or a person's decision about one. */
export interface AgUiInterrupt {
  readonly id: string
  readonly reason: string
  readonly message?: string
  readonly toolCallId?: string
  /** JSON Schema of the answer. */
  readonly responseSchema?: Readonly<Record<string, unknown>>
  readonly metadata?: AgUiMetadata
}

/** Any other event: state, activity, raw and draft events. */
export interface AgUiOtherEvent {
  readonly type: string & { readonly other?: never }
  readonly timestamp?: number
  readonly [field: string]: unknown
}

/** The token counters that both a thread and AG-UI have: the thread's name and AG-UI's name. */
export const USAGE: Readonly<
  Record<
    `${'input' | 'output' | 'total' | 'thinking' | 'cache_read' | 'cache_write'}_tokens`,
    Exclude<keyof AgUiUsage, 'provider' | 'model'>
  >
> = {
  input_tokens: 'inputTokens',
  output_tokens: 'outputTokens',
  total_tokens: 'totalTokens',
  thinking_tokens: 'reasoningTokens',
  cache_read_tokens: 'cachedInputTokens',
  cache_write_tokens: 'cacheWriteInputTokens',
}
