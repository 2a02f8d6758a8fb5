import type { JsonValue } from '@skein/base'
import type { Message } from '@skein/ai'
import type { StoredMessage, ThreadState } from '../contract/thread-state.ts'

/** A tool call, as hooks receive it. */
export interface HookToolCall {
  readonly toolCallId: string
  readonly toolName: string
  readonly arguments: JsonValue
}

/** The result of a tool call, as hooks receive it. */
export interface HookToolResult {
  readonly result: unknown
  readonly isError: boolean
}

type Answer<T> = T | Promise<T>

/** The parameters and results of all hooks. A hook that returns nothing changes nothing. */
export interface HookSignatures {
  readonly after_thread_created: (state: ThreadState) => Answer<void>
  readonly after_subagent_created: (
    state: ThreadState,
    child: { readonly reference: string; readonly name: string },
  ) => Answer<void>
  /** Changes the system text of a request; null removes it. */
  readonly after_system_message: (state: ThreadState, text: string) => Answer<string | null | void>
  /** Selects which stored messages are sent to the model. */
  readonly filter_messages: (
    state: ThreadState,
    messages: readonly StoredMessage[],
  ) => Answer<readonly StoredMessage[] | void>
  /**
   * Changes the messages of a request after all other hooks. Throwing `{ block: true }` ends the session
   * without a request.
   */
  readonly prefilter_llm_history: (
    state: ThreadState,
    messages: readonly Message[],
  ) => Answer<readonly Message[] | void>
  readonly before_create_message: (
    state: ThreadState,
    message: StoredMessage,
  ) => Answer<Pick<StoredMessage, 'message'> | void>
  readonly after_create_message: (state: ThreadState, message: StoredMessage) => Answer<void>
  readonly before_update_message: (
    state: ThreadState,
    id: string,
    message: Message,
  ) => Answer<Message | void>
  readonly after_update_message: (state: ThreadState, message: StoredMessage) => Answer<void>
  readonly before_store_tool_result: (
    state: ThreadState,
    call: HookToolCall,
    result: HookToolResult,
  ) => Answer<HookToolResult | void>
  /** Changes the result. Null hides the call from models; the log keeps it. */
  readonly after_tool_call_success: (
    state: ThreadState,
    call: HookToolCall,
    result: HookToolResult,
  ) => Answer<HookToolResult | null | void>
  readonly after_tool_call_failure: (
    state: ThreadState,
    call: HookToolCall,
    result: HookToolResult,
  ) => Answer<HookToolResult | null | void>
  readonly tool_call_started: (state: ThreadState, call: HookToolCall) => Answer<void>
  readonly tool_call_done: (
    state: ThreadState,
    call: HookToolCall,
    result: HookToolResult,
  ) => Answer<void>
}

/** The name of a hook. */
export type HookName = keyof HookSignatures
