import {
  isToolResultMessage,
  messageFromJSON,
  messageToJSON,
  ToolResultMessage,
  toToolResult,
  type MessageJSON,
  type ToolCall,
  type ToolOutcome,
  type ToolResult,
} from '@skein/ai'
import type { CheckpointStore } from '../checkpoint.ts'
import { AgentState, type AgentStateJSON } from '../state.ts'
import { openCallsOf } from '../transcript.ts'

/** A call that is over, noted before anything else happens. */
export interface JournalEntry {
  readonly toolCallId: string
  /** Its result as a message, so that bytes survive. */
  readonly message: MessageJSON
}

/** A store that also notes finished calls, e.g. `fileCheckpoints({ journal: true })`. */
export type JournalingStore = CheckpointStore & Required<Pick<CheckpointStore, 'record'>>

/** What the stores of this package can do; `record` only with the option `journal`. */
export type FullCheckpointStore = CheckpointStore & Required<Pick<CheckpointStore, 'loadMetadata'>>

export function keepsJournal(store: CheckpointStore): store is JournalingStore {
  return typeof store.record === 'function'
}

export function journalEntry(call: ToolCall, outcome: ToolOutcome): JournalEntry {
  const message = new ToolResultMessage([toToolResult({ call, outcome, durationMs: 0 })])
  return { toolCallId: call.toolCallId, message: messageToJSON(message) }
}

/**
 * The state with the results that a journal has for its open calls: `agent.resume` does not run them
 * again. Entries for anything else are of an older state and are passed over.
 */
export function foldJournal(
  json: AgentStateJSON,
  entries: readonly JournalEntry[],
): AgentStateJSON {
  if (entries.length === 0) return json
  const state = AgentState.fromJSON(json)
  const { answered, deferred = [] } = state.suspension ?? {}
  const known = new Map(answered?.results.map((result) => [result.toolCallId, result]))
  for (const result of entries.flatMap(resultsOf)) known.set(result.toolCallId, result)
  const results = openCallsOf(state.messages).flatMap(
    ({ toolCallId }) => known.get(toolCallId) ?? [],
  )
  if (results.length === (answered?.results.length ?? 0)) return json
  const done = new Set(results.map(({ toolCallId }) => toolCallId))
  const folded = state.withSuspension({
    answered: new ToolResultMessage(results),
    deferred: deferred.filter(({ toolCallId }) => !done.has(toolCallId)),
  })
  return { ...folded.toJSON(), id: json.id }
}

function resultsOf({ message }: JournalEntry): readonly ToolResult[] {
  const read = messageFromJSON(message)
  return isToolResultMessage(read) ? read.results : []
}
