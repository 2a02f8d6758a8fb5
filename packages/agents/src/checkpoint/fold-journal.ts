import { isToolResultMessage, messageFromJSON, ToolResultMessage } from '@skein/ai'
import { addUsage } from '@skein/ai/engine'
import type { CallRecord } from '../contract/checkpoint-store.ts'
import { usageOfTrace } from '../state/run-account.ts'
import type { AgentStateJSON, SubagentExecutionTrace } from '../state/state-types.ts'
import { AgentState } from '../state/state.ts'
import { openCallsOf } from '../state/transcript.ts'

/**
 * Adds the results in a journal to the open calls of a state, so that `agent.resume`
 * does not run these calls again. Entries of other calls belong to an older state and are ignored.
 */
export function foldJournal(json: AgentStateJSON, entries: readonly CallRecord[]): AgentStateJSON {
  if (entries.length === 0) return json
  const state = AgentState.fromJSON(json)
  const { answered, deferred = [] } = state.suspension ?? {}
  const resultOfCall = new Map(answered?.results.map((result) => [result.toolCallId, result]))
  for (const entry of entries) {
    const message = messageFromJSON(entry.message)
    if (!isToolResultMessage(message)) continue
    for (const result of message.results) resultOfCall.set(result.toolCallId, result)
  }
  const results = openCallsOf(state.messages).flatMap(
    ({ toolCallId }) => resultOfCall.get(toolCallId) ?? [],
  )
  if (results.length === (answered?.results.length ?? 0)) return json
  const finishedIds = new Set(results.map(({ toolCallId }) => toolCallId))
  const nextState = state.withSuspension({
    answered: new ToolResultMessage(results),
    deferred: deferred.filter(({ toolCallId }) => !finishedIds.has(toolCallId)),
  })
  const before = new Set(answered?.results.map(({ toolCallId }) => toolCallId))
  // A call that was tried again after a crash may have one entry per attempt; the last entry counts.
  const last = new Map(entries.map((entry) => [entry.toolCallId, entry]))
  const traces = [...last.values()].flatMap(({ toolCallId, traces: ended = [] }) =>
    finishedIds.has(toolCallId) && !before.has(toolCallId) ? ended : [],
  )
  const newState = traces.reduce(addTrace, nextState)
  return { ...newState.toJSON(), id: json.id }
}

/** Adds the trace of a sub-agent that has ended to a state, and its tokens to what the run has used. */
function addTrace(state: AgentState, trace: SubagentExecutionTrace): AgentState {
  const next = state.withSubagentTrace(trace)
  const { run } = next
  if (!run) return next
  return next.withRun({ ...run, subagentUsage: addUsage(run.subagentUsage, usageOfTrace(trace)) })
}
