import type { Finished } from './finished.ts'

/** Every call has one result, and nothing has a result that was not called. */
export function callsHaveOneResult({ world, threads }: Finished): void {
  for (const { head, events, state } of threads.values()) {
    const open = new Map<string, number>()
    for (const event of events) {
      if (event.type === 'message_added') {
        const calls =
          (event.message as { tool_calls?: unknown; toolCalls?: { toolCallId: string }[] })
            .toolCalls ?? []
        for (const { toolCallId } of calls) open.set(toolCallId, 0)
      }
      if (event.type === 'call_changed') open.set(event.changedTo, 0)
      if (event.type !== 'tool_execution_end') continue
      const count = open.get(event.toolCallId)
      if (count === undefined)
        world.violate(`${head.id}: a result for ${event.toolCallId}, which nobody called`)
      else if (count > 0) world.violate(`${head.id}: ${event.toolCallId} has two results`)
      open.set(event.toolCallId, (count ?? 0) + 1)
    }
    for (const { calls } of state.entries)
      for (const { call, outcome } of calls)
        if (!outcome)
          world.violate(`${head.id}: ${call.toolName} (${call.toolCallId}) has no result`)
  }
}
