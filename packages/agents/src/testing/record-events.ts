import type { AgentStreamResult, GenerateResult } from '../agent.ts'
import type { AgentStreamEvent } from '../event.ts'

/** A run that was read to its end. */
export interface RecordedRun {
  readonly events: readonly AgentStreamEvent[]
  /** One word per event, e.g. `step_start`, `text_delta`, `step_end`: easy to compare. */
  readonly types: readonly string[]
  readonly result?: GenerateResult
  /** Set instead of a result when the run failed. */
  readonly error?: unknown
}

/** Reads a stream to its end and keeps everything. Does not throw: how it ended is in the record. */
export async function recordEvents(stream: AgentStreamResult): Promise<RecordedRun> {
  const events: AgentStreamEvent[] = []
  const seen = (): Pick<RecordedRun, 'events' | 'types'> => ({ events, types: events.map(typeOf) })
  try {
    for await (const event of stream) events.push(event)
    const result = await stream.result
    return { ...seen(), result }
  } catch (error) {
    return { ...seen(), error }
  }
}

function typeOf(event: AgentStreamEvent): string {
  return event.source === 'uap' ? event.uap.type : event.upp.type
}
