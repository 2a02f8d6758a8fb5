import type { AssistantMessage, ToolResultMessage } from '../contract/message.ts'
import type { ToolCall } from '../contract/tool.ts'

/** Keys for `encodeOnce`, made once per request: a new string for each message would cost its hash. */
export interface ResultKeys {
  readonly plain: string
  /** For results whose calls are all of the kind that changes how a result is written. */
  readonly marked: string
}

/** The keys of one request. */
export function resultKeys(base: string): ResultKeys {
  return { plain: base, marked: `${base} marked` }
}

/**
 * The key under which results are remembered by wires that write them with the name and id of
 * their calls. Usually the results say that themselves; else the key names the message before.
 */
export function resultKey(
  { results }: ToolResultMessage,
  before: AssistantMessage | undefined,
  { plain, marked }: ResultKeys,
  isMarked: (call: ToolCall) => boolean,
): string {
  const calls = before?.toolCalls ?? []
  let count = 0
  for (let i = 0; i < results.length; i++) {
    const call = calls[i]
    const { toolCallId, toolName } = results[i]!
    const isTold = call?.toolCallId === toolCallId && call.toolName === toolName
    if (!isTold) return `${plain} after ${before?.id}`
    if (isMarked(call)) count++
  }
  if (count === 0) return plain
  return count === results.length ? marked : `${plain} after ${before?.id}`
}
