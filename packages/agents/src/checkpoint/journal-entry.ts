import { messageToJSON, type ToolCall, type ToolOutcome, ToolResultMessage } from '@skein/ai'
import { toToolResult } from '@skein/ai/engine'
import type { CallRecord } from '../contract/checkpoint-store.ts'

/** Returns the journal entry of a finished call. */
export function journalEntry(
  call: ToolCall,
  outcome: ToolOutcome,
  traces: CallRecord['traces'] = [],
): CallRecord {
  const message = new ToolResultMessage([toToolResult({ call, outcome, durationMs: 0 })])
  const entry = { toolCallId: call.toolCallId, message: messageToJSON(message) }
  return traces.length > 0 ? { ...entry, traces } : entry
}
