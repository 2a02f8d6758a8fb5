import { isAssistantMessage, isToolResultMessage, type Message } from './message.ts'
import type { SettledCall } from './tool-executor.ts'

/** Names of the tools that some call in this history ran successfully. */
export function succeededTools(messages: readonly Message[]): Set<string> {
  const names = new Map<string, string>()
  const succeeded = new Set<string>()
  for (const message of messages) {
    if (isAssistantMessage(message))
      for (const call of message.toolCalls ?? []) names.set(call.toolCallId, call.toolName)
    else if (isToolResultMessage(message))
      for (const { toolCallId, toolName, isError } of message.results) {
        const name = toolName ?? names.get(toolCallId)
        if (!isError && name !== undefined) succeeded.add(name)
      }
  }
  return succeeded
}

/** Adds what a batch brought. */
export function addSucceeded(
  succeeded: Set<string> | undefined,
  settled: readonly SettledCall[],
): void {
  for (const { call, outcome } of settled)
    if (outcome.type === 'done') succeeded?.add(call.toolName)
}
