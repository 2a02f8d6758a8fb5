import { type Clock, type IdSource, isDeepFrozen } from '@skein/base'
import {
  addUsage,
  isToolResultMessage,
  messageFromJSON,
  type MessageJSON,
  messageToJSON,
  type ToolCall,
  type ToolOutcome,
  ToolResultMessage,
  toToolResult,
} from '@skein/ai'
import type { CheckpointMetadata, CallRecord } from '../contract/checkpoint-store.ts'
import { usageOfTrace } from '../state/run-account.ts'
import type { AgentStateJSON, SubagentExecutionTrace } from '../state/state-types.ts'
import { AgentState } from '../state/state.ts'
import { openCallsOf } from '../state/transcript.ts'

/** The JSON text of frozen messages, so that a save only has to write new messages. */
const texts = new WeakMap<MessageJSON, string>()

/**
 * Returns the JSON text of a state. Texts of frozen messages are cached, so that a save per step stays cheap.
 */
export function stateText({ messages, ...rest }: AgentStateJSON): string {
  const head = JSON.stringify(rest)
  const written = messages.map((message) => {
    const known = texts.get(message)
    if (known !== undefined) return known
    const text = JSON.stringify(message)
    if (isDeepFrozen(message)) texts.set(message, text)
    return text
  })
  return `${head.slice(0, -1)},"messages":[${written.join(',')}]}`
}

/** Returns the metadata of a checkpoint that is saved now (UAP §12.4.2). */
export function checkpointMetadata(
  sessionId: string,
  { step, metadata }: AgentStateJSON,
  { clock, ids }: { readonly clock: Clock; readonly ids: IdSource },
): CheckpointMetadata {
  const { agentId } = metadata
  return {
    sessionId,
    checkpointId: ids(),
    timestamp: new Date(clock.now()).toISOString(),
    step,
    agentId: typeof agentId === 'string' ? agentId : '',
  }
}

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

/**
 * Adds the results in a journal to the open calls of a state, so that `agent.resume` does not run them again.
 * Entries of other calls belong to an older state and are ignored.
 */
export function foldJournal(json: AgentStateJSON, entries: readonly CallRecord[]): AgentStateJSON {
  if (entries.length === 0) return json
  const state = AgentState.fromJSON(json)
  const { answered, deferred = [] } = state.suspension ?? {}
  const known = new Map(answered?.results.map((result) => [result.toolCallId, result]))
  for (const entry of entries) {
    const message = messageFromJSON(entry.message)
    if (!isToolResultMessage(message)) continue
    for (const result of message.results) known.set(result.toolCallId, result)
  }
  const results = openCallsOf(state.messages).flatMap(
    ({ toolCallId }) => known.get(toolCallId) ?? [],
  )
  if (results.length === (answered?.results.length ?? 0)) return json
  const done = new Set(results.map(({ toolCallId }) => toolCallId))
  const suspended = state.withSuspension({
    answered: new ToolResultMessage(results),
    deferred: deferred.filter(({ toolCallId }) => !done.has(toolCallId)),
  })
  const before = new Set(answered?.results.map(({ toolCallId }) => toolCallId))
  // A call that is tried again after a crash has one entry per attempt at most; the last one counts.
  const last = new Map(entries.map((entry) => [entry.toolCallId, entry]))
  const traces = [...last.values()].flatMap(({ toolCallId, traces: ended = [] }) =>
    done.has(toolCallId) && !before.has(toolCallId) ? ended : [],
  )
  const folded = traces.reduce(addTrace, suspended)
  return { ...folded.toJSON(), id: json.id }
}

/** Adds the trace of a sub-agent that has ended, and its tokens to the account of the run. */
function addTrace(state: AgentState, trace: SubagentExecutionTrace): AgentState {
  const next = state.withSubagentTrace(trace)
  const { run } = next
  if (!run) return next
  return next.withRun({ ...run, subagentUsage: addUsage(run.subagentUsage, usageOfTrace(trace)) })
}
