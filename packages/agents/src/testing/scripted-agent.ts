import {
  scripted,
  type ScriptedModel,
  type ScriptFunction,
  type ScriptStep,
} from '@skein/ai/testing'
import { agent } from '../agent.ts'
import type {
  Agent,
  AgentOptions,
  AgentStreamResult,
  GenerateResult,
} from '../contract/agent-types.ts'
import type { AgentStreamEvent } from '../contract/event.ts'

/** An agent whose model answers from a script and records its requests. */
export interface ScriptedAgent extends Agent {
  readonly model: ScriptedModel
}

/**
 * Makes an agent that answers from a script, for tests.
 *
 *     const coder = scriptedAgent([calls('read', { path: 'a' }), says('Done.')], { tools: [read] })
 *     await coder.query('Read a')
 *     coder.model.requests.length // 2
 */
export function scriptedAgent(
  script: readonly ScriptStep[] | ScriptFunction,
  options: Omit<AgentOptions, 'model'> = {},
): ScriptedAgent {
  return agent({ ...options, model: scripted(script) }) as ScriptedAgent // `agent()` uses the model unchanged
}

/** A run that was read to its end. */
type RecordedRun = {
  readonly events: readonly AgentStreamEvent[]
  /** The type of each event, e.g. `step_start`, `text_delta`, `step_end`: easy to compare. */
  readonly types: readonly string[]
  readonly result?: GenerateResult
  /** Set instead of a result when the run failed. */
  readonly error?: unknown
}

/**
 * Reads a stream to its end and records its events. Does not throw: the record has the result or the error.
 */
export async function recordEvents(stream: AgentStreamResult): Promise<RecordedRun> {
  const events: AgentStreamEvent[] = []
  const seen = (): Pick<RecordedRun, 'events' | 'types'> => ({
    events,
    types: events.map(({ uap, upp }) => (uap ?? upp).type),
  })
  try {
    for await (const event of stream) events.push(event)
    const result = await stream.result
    return { ...seen(), result }
  } catch (error) {
    return { ...seen(), error }
  }
}
