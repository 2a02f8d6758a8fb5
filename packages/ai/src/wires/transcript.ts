import { type AssistantMessage, type Message, ToolResultMessage } from '../contract/message.ts'
import type { ToolCall, ToolResult } from '../contract/tool.ts'
import type { Warning } from '../contract/turn.ts'

/**
 * Repairs a conversation so that every vendor accepts it: each tool call is answered exactly once, before
 * the next message. A missing result is replaced by an error result, and a result without an open call is
 * dropped; each adds a warning. Messages that need no repair are returned as the same objects.
 */
export function repairTranscript(
  messages: readonly Message[],
  warnings: Warning[] = [],
): readonly Message[] {
  if (isWhole(messages)) return messages
  const whole: Message[] = []
  let index = 0
  while (index < messages.length) {
    const message = messages[index++]!
    if (message.type === 'tool_result') {
      dropOrphans(message.results, warnings)
      continue
    }
    whole.push(message)
    if (message.type !== 'assistant' || !message.toolCalls?.length) continue
    const start = index
    while (messages[index]?.type === 'tool_result') index++
    // The slice contains only tool results, as the loop above has checked.
    const answers = messages.slice(start, index) as ToolResultMessage[]
    for (const answer of answerCalls(message, answers, warnings)) whole.push(answer)
  }
  const isSame =
    messages.length === whole.length && messages.every((message, at) => message === whole[at])
  return isSame ? messages : whole
}

/**
 * Checks whether a conversation needs no repair. The check runs before every request, so it allocates
 * nothing.
 */
export function isWhole(messages: readonly Message[]): boolean {
  for (let index = 0; index < messages.length; index++) {
    const message = messages[index]!
    if (message.type === 'tool_result') return false
    if (message.type !== 'assistant' || !message.toolCalls?.length) continue
    const next = messages[++index]
    if (next?.type !== 'tool_result' || !answersInOrder(message.toolCalls, next.results))
      return false
  }
  return true
}

function answerCalls(
  message: AssistantMessage,
  answers: readonly ToolResultMessage[],
  warnings: Warning[],
): readonly ToolResultMessage[] {
  const calls = message.toolCalls!
  if (answers.length === 1 && answersInOrder(calls, answers[0]!.results)) return answers
  const open = new Map<string, number>()
  for (const { toolCallId } of calls) open.set(toolCallId, (open.get(toolCallId) ?? 0) + 1)
  const validAnswers = answers.flatMap((answer) => {
    const orphans: ToolResult[] = []
    const results = answer.results.filter((result) => {
      const isOpen = takeOne(open, result.toolCallId)
      if (!isOpen) orphans.push(result)
      return isOpen
    })
    if (orphans.length === 0) return [answer]
    dropOrphans(orphans, warnings)
    if (results.length === 0) return []
    const { id, timestamp, metadata } = answer
    return [new ToolResultMessage(results, { id, timestamp, metadata })]
  })
  const missing = calls.filter(({ toolCallId }) => takeOne(open, toolCallId))
  if (missing.length > 0) validAnswers.push(unanswered(message, missing, warnings))
  return validAnswers
}

function answersInOrder(calls: readonly ToolCall[], results: readonly ToolResult[]): boolean {
  if (calls.length !== results.length) return false
  for (let index = 0; index < calls.length; index++) {
    if (calls[index]!.toolCallId !== results[index]!.toolCallId) return false
  }
  return true
}

function takeOne(open: Map<string, number>, id: string): boolean {
  const count = open.get(id) ?? 0
  if (count > 0) open.set(id, count - 1)
  return count > 0
}

function dropOrphans(results: readonly ToolResult[], warnings: Warning[]): void {
  for (const { toolCallId } of results) {
    warnings.push({
      code: 'orphan_tool_result_dropped',
      message: `The result of tool call "${toolCallId}" answers no open call and was not sent.`,
    })
  }
}

function unanswered(
  message: AssistantMessage,
  calls: readonly ToolCall[],
  warnings: Warning[],
): ToolResultMessage {
  for (const { toolCallId, toolName } of calls) {
    warnings.push({
      code: 'missing_tool_result',
      message: `Tool call "${toolCallId}" (${toolName}) has no result; an error result was sent.`,
    })
  }
  const results = calls.map(({ toolCallId, toolName }) => ({
    toolCallId,
    toolName,
    result: 'This tool call was not executed.',
    isError: true,
  }))
  const { id, timestamp } = message
  return new ToolResultMessage(results, { id: `${id}-unanswered`, timestamp })
}

/** Returns a function that finds the name of a called tool, for vendors that match results by name. */
export function toolNameOf(
  messages: readonly Message[],
): (toolCallId: string) => string | undefined {
  let names: Map<string, string> | undefined
  return (toolCallId) => {
    if (!names) {
      names = new Map()
      for (const message of messages) {
        if (message.type !== 'assistant') continue
        for (const call of message.toolCalls ?? []) names.set(call.toolCallId, call.toolName)
      }
    }
    return names.get(toolCallId)
  }
}
