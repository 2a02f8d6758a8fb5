import { unknownOptions, type OptionNames } from '@skein/base'
import type { AgentDefinition, SideHandler } from './agent-definition.ts'
import { branded } from './agent-brand.ts'
import { frozenDefinition } from './frozen-definition.ts'
import { RuntimeError } from '../contract/error.ts'

/**
 * Makes a subagent of an ordinary agent: a `dual_ai` agent (Standard Agents §7.1) whose side A is the agent's, and
 * whose session ends with the answer of that side, which is the result. Side B never speaks.
 *
 *     tools: [asSubagent(researcher)]
 *     tools: [{ name: asSubagent(researcher), blocking: false, resumable: { maxInstances: 3 } }]
 *
 * The agent itself may be registered too. The tool then still has the agent's name, and the threads of the subagent
 * belong to an agent called `<name>_subagent`.
 */
export function asSubagent(
  agent: AgentDefinition,
  options: Pick<Partial<AgentDefinition>, 'name' | 'toolDescription'> = {},
): AgentDefinition {
  const { name = agent.name, toolDescription } = options
  const unknown = unknownOptions(options, SUBAGENT_OPTIONS)
  if (unknown !== undefined)
    throw new RuntimeError(`asSubagent() does not have these options: ${unknown}.`, {
      code: 'INPUT_INVALID',
      hint: 'It has: name, toolDescription. Everything else belongs to the agent.',
    })
  const isPlain = options.name === undefined && toolDescription === undefined
  const earlier = isPlain ? plainSubagents.get(agent) : undefined
  if (earlier) return earlier
  if (agent.type === 'dual_ai')
    throw new RuntimeError(`The agent "${agent.name}" is a subagent already.`, {
      code: 'INPUT_INVALID',
      hint: 'List it in the tools as it is; asSubagent is for agents of the type ai_human.',
    })
  const text = toolDescription ?? agent.toolDescription ?? agent.description
  const result = branded(
    {
      ...agent,
      name,
      type: 'dual_ai',
      maxSessionTurns: agent.maxSessionTurns ?? 250,
      exposeAsTool: true,
      toolDescription: text,
      sideA: frozenDefinition({ ...agent.sideA, sessionStopOnResponse: true }),
      sideB: Object.freeze({ label: 'caller', handler: silentHandler }),
    },
    { source: agent },
  )
  if (isPlain) plainSubagents.set(agent, result)
  return result
}

const SUBAGENT_OPTIONS: OptionNames = {
  known: ['name', 'toolDescription'],
  renamed: { description: 'toolDescription' },
}

/** The handler of the side of a subagent that never speaks. */
export const silentHandler: SideHandler = () => undefined

/** The subagents that were made without options, by their agents: an agent that two prompts list is one subagent. */
const plainSubagents: WeakMap<AgentDefinition, AgentDefinition> = new WeakMap()
