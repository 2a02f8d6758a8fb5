/**
 * An event of AG-UI 1.0. Events that are not part of a conversation have the type `AgUiOtherEvent` and are
 * kept whole.
 */
export type AgUiEvent = AgUiKnownEvent | AgUiOtherEvent

interface Base<Type extends string> {
  readonly type: Type
  /** Milliseconds since 1970. */
  readonly timestamp?: number
}

/** The sender of an AG-UI text message. */
export type AgUiRole = 'user' | 'assistant' | 'system' | 'developer'

/** The AG-UI events that a thread can be converted to and from. */
export type AgUiKnownEvent =
  | (Base<'RUN_STARTED'> & {
      readonly threadId: string
      readonly runId: string
      readonly parentRunId?: string
    })
  | (Base<'RUN_FINISHED'> & {
      readonly threadId: string
      readonly runId: string
      readonly result?: unknown
      readonly outcome?: AgUiOutcome
    })
  | (Base<'RUN_ERROR'> & { readonly message: string; readonly code?: string })
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
      readonly content: string
      readonly role?: 'tool'
    })
  | (Base<'CUSTOM'> & { readonly name: string; readonly value: unknown })

/** How a run of AG-UI ended. */
export type AgUiOutcome =
  | { readonly type: 'success' }
  | { readonly type: 'interrupt'; readonly interrupts: readonly AgUiInterrupt[] }
  | { readonly type: 'cancelled' }

/** Something that a run of AG-UI waits for; here always an open tool call. */
export interface AgUiInterrupt {
  readonly id: string
  readonly reason: string
  readonly message?: string
  readonly toolCallId?: string
}

/** Any other event: state, activity, raw and draft events. */
export interface AgUiOtherEvent {
  readonly type: string & { readonly other?: never }
  readonly timestamp?: number
  readonly [field: string]: unknown
}
