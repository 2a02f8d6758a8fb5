import type { AssistantMessage, ToolResultMessage } from '../contract/message.ts'
import type { ToolCall } from '../contract/tool.ts'

/** Keys for `encodeOnce`, made once per request, because hashing a new string for each message is slow. */
interface ResultKeys {
  readonly plain: string
  /**
   * The key for results whose calls all satisfy `isMarked` of `resultKey`, since such results are written
   * differently.
   */
  readonly marked: string
}

/** Makes the keys of one request. */
export function resultKeys(base: string): ResultKeys {
  return { plain: base, marked: `${base} marked` }
}

/**
 * Returns the cache key of tool results, for formats that write a result with the name and id of its call. If
 * all results contain the id and name of their calls, and all or none of the calls are marked, the key is
 * `marked` or `plain`. Otherwise the key names the preceding message.
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
