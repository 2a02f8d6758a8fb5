import {
  scripted,
  type ScriptedModel,
  type ScriptFunction,
  type ScriptStep,
} from '@skein/ai/testing'
import { agent, type Agent, type AgentOptions } from '../agent.ts'

/** An agent whose model answers from a script and keeps what it was asked. */
export interface ScriptedAgent extends Agent {
  readonly model: ScriptedModel
}

/**
 *     const coder = scriptedAgent([calls('read', { path: 'a' }), says('Done.')], { tools: [read] })
 *     await coder.query('Read a')
 *     coder.model.requests.length // 2
 */
export function scriptedAgent(
  script: readonly ScriptStep[] | ScriptFunction,
  options: Omit<AgentOptions, 'model'> = {},
): ScriptedAgent {
  return agent({ ...options, model: scripted(script) }) as ScriptedAgent // agent() keeps the model
}
