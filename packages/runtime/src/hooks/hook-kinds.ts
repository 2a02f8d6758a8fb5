import type { HookName } from '../definitions/hooks.ts'

/** Which hooks answer, i.e. return a value that the runtime uses; the others only observe. */
export const ANSWERS: Readonly<Record<HookName, boolean>> = {
  after_thread_created: false,
  after_subagent_created: false,
  after_system_message: true,
  filter_messages: true,
  prefilter_llm_history: true,
  before_create_message: true,
  after_create_message: false,
  before_update_message: true,
  after_update_message: false,
  before_store_tool_result: true,
  after_tool_call_success: true,
  after_tool_call_failure: true,
  tool_call_started: false,
  tool_call_done: false,
}

/**
 * Which held write a hook follows so closely that the write cannot wait for the next commit: the answer of a model,
 * the last result of a message, or both. Hooks may commit, and what they see must be in the log by then.
 */
const FOLLOWS: Readonly<Record<HookName, readonly ('answer' | 'result')[]>> = {
  after_thread_created: [],
  after_subagent_created: [],
  after_system_message: [],
  filter_messages: [],
  prefilter_llm_history: [],
  before_create_message: [],
  after_create_message: ['answer', 'result'],
  before_update_message: [],
  after_update_message: ['result'],
  before_store_tool_result: ['answer'], // of calls that are refused, as is the next one
  after_tool_call_success: [],
  after_tool_call_failure: ['answer'],
  tool_call_started: [],
  tool_call_done: ['result'],
}

/** Whether one of the hooks follows this write so closely that it must be committed by itself. */
export function actsOn(
  write: 'answer' | 'result',
  hooks: readonly { readonly hook: HookName }[],
): boolean {
  return hooks.some(({ hook }) => FOLLOWS[hook].includes(write))
}
