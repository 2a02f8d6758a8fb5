import {
  type AssistantMessage,
  isAssistantMessage,
  isToolResultMessage,
  type Message,
  type MessageOptions,
  type ToolCall,
  type ToolResult,
  ToolResultMessage,
} from '@skein/ai'

/** The result that the model sees for a call that has no result. */
const INTERRUPTED = 'The call was interrupted before it had a result.'

/** The settings for repairing a history. */
export interface RepairOptions {
  /** Results that are known but not part of the history yet. */
  readonly known?: readonly ToolResult[]
  /** Whether calls at the end stay open, because they are about to run. */
  readonly keepsTail?: boolean
  /** The number of messages at the start that need no check, because they were repaired before. */
  readonly checked?: number
  readonly sources: Pick<MessageOptions, 'ids' | 'clock'>
}

/**
 * Returns a history in which every tool call has exactly one result before the next message, as vendors
 * require: missing results are taken from `known` or become error results, results without a call are
 * dropped. Returns the same array if nothing is wrong, which is the common case and is checked in one pass.
 */
export function repairHistory(
  messages: readonly Message[],
  options: RepairOptions,
): readonly Message[] {
  if (isWhole(messages, options)) return messages
  const history: Message[] = []
  for (let index = 0; index < messages.length;) {
    const message = messages[index++]!
    if (isToolResultMessage(message)) continue // no call precedes this result
    history.push(message)
    if (!isAssistantMessage(message) || !message.toolCalls?.length) continue
    const answers: ToolResultMessage[] = []
    for (let next = messages[index]; next && isToolResultMessage(next); next = messages[++index])
      answers.push(next)
    const isTail = index >= messages.length
    history.push(...answerCalls(message, answers, isTail ? options : { sources: options.sources }))
  }
  return history
}

function isWhole(
  messages: readonly Message[],
  { keepsTail = false, checked = 0 }: RepairOptions,
): boolean {
  for (let index = checked; index < messages.length; index++) {
    const message = messages[index]!
    if (isToolResultMessage(message)) return false
    if (!isAssistantMessage(message) || !message.toolCalls?.length) continue
    const next = messages[++index]
    if (!next && keepsTail) return true
    if (!next || !isToolResultMessage(next)) return false
    if (message.toolCalls.length !== next.results.length) return false
    const { results } = next
    if (message.toolCalls.some(({ toolCallId }, at) => toolCallId !== results[at]!.toolCallId))
      return false
  }
  return true
}

/**
 * Returns the results of a message's calls: those in the history, then the missing ones, taken from `known`
 * or as error results. With `keepsTail` no missing results are added.
 */
function answerCalls(
  { toolCalls = [] }: AssistantMessage,
  answers: readonly ToolResultMessage[],
  { known = [], keepsTail = false, sources }: RepairOptions,
): ToolResultMessage[] {
  const open = new Map(toolCalls.map((call) => [call.toolCallId, call]))
  const kept = answers.flatMap((answer) => {
    // `delete` returns true once per call, so second results and results without a call are dropped.
    const results = answer.results.filter(({ toolCallId }) => open.delete(toolCallId))
    if (results.length === answer.results.length) return [answer]
    if (results.length === 0) return []
    const { id, timestamp, metadata } = answer
    return [new ToolResultMessage(results, { id, timestamp, metadata })]
  })
  if (keepsTail || open.size === 0) return kept
  const results = [...open.values()].map(
    ({ toolCallId, toolName }): ToolResult =>
      known.find((result) => result.toolCallId === toolCallId) ?? {
        toolCallId,
        toolName,
        result: INTERRUPTED,
        isError: true,
      },
  )
  return [...kept, new ToolResultMessage(results, sources)]
}

/** Returns the calls of the last message that has any, and the ids of those with a result after it. */
export function lastCallsOf(messages: readonly Message[]): {
  readonly calls: readonly ToolCall[]
  readonly answered: ReadonlySet<string>
} {
  const answeredIds = new Set<string>()
  for (let index = messages.length - 1; index >= 0; index--) {
    const message = messages[index]!
    if (isToolResultMessage(message))
      for (const { toolCallId } of message.results) answeredIds.add(toolCallId)
    else if (isAssistantMessage(message) && message.toolCalls?.length)
      return { calls: message.toolCalls, answered: answeredIds }
  }
  return { calls: [], answered: answeredIds }
}

/** Returns the calls without a result in the last assistant message, if only results follow it. */
export function openCallsOf(messages: readonly Message[]): readonly ToolCall[] {
  const last = messages.findLast((message) => !isToolResultMessage(message))
  if (!last || !isAssistantMessage(last) || !last.toolCalls) return []
  const { answered } = lastCallsOf(messages)
  return last.toolCalls.filter(({ toolCallId }) => !answered.has(toolCallId))
}
