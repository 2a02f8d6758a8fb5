import type { AgentState, AgentStateJSON, AgentStreamEvent } from '@skein/agents'
import type { CheckpointStore } from '@skein/agents/checkpoint'

/** A state without what differs between two runs of the same script: ids, times, durations. */
export function content(state: AgentState): unknown {
  const { step, metadata, reasoning, plan, subagentTraces, suspension, messages } = state
  return anonymous({ step, metadata, reasoning, plan, subagentTraces, suspension, messages })
}

export function anonymous(value: unknown): unknown {
  return JSON.parse(
    JSON.stringify(value, (key, item: unknown) =>
      ['id', 'timestamp', 'startTime', 'endTime', 'duration', 'durationMs', 'subagentId'].includes(
        key,
      ) ||
      (key === 'sessionId' && typeof item === 'string')
        ? undefined
        : item,
    ),
  )
}

export async function collect(
  stream: AsyncIterable<AgentStreamEvent>,
): Promise<AgentStreamEvent[]> {
  const events: AgentStreamEvent[] = []
  for await (const event of stream) events.push(event)
  return events
}

/** `step_start`, `upp`, `upp`, `step_end` …: runs of the model's events as one. */
export function outline(events: readonly AgentStreamEvent[]): string[] {
  const names = events.map((event) => event.uap?.type ?? 'upp')
  return names.filter((name, index) => name !== 'upp' || names[index - 1] !== 'upp')
}

/** A store that remembers every save. */
export function recordingStore(): CheckpointStore & { readonly saves: [string, AgentStateJSON][] } {
  const saves: [string, AgentStateJSON][] = []
  return {
    saves,
    save: async (sessionId, state) => void saves.push([sessionId, structuredClone(state)]),
    load: async (sessionId) => saves.findLast(([id]) => id === sessionId)?.[1] ?? null,
    delete: async () => {},
    list: async () => [...new Set(saves.map(([id]) => id))],
  }
}

export const uuidV4: RegExp =
  /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
