import { sha256Hex, toJsonSchema } from '@skein/base'
import { nextAgents, sidesOf } from './related-definitions.ts'
import type { ResolvedAgent, ResolvedSide, ResolvedTool } from '../resolved.ts'

/** Hex digits of a hash: 128 bits. */
const DIGITS = 32

/**
 * Sets the `hash` of every agent: it names what a session of the agent runs with, so that a log can say with
 * which definitions a session began. The hash covers the agent and all agents that it may hand over to or
 * create as children: their sides, prompts, models and limits, and the names, schemas and risks of tools.
 *
 * The code of tools, hooks and strategies is not part of the hash. The same source has another text after
 * bundling, a text says nothing about what a function closes over, and a corrected tool is meant for threads
 * that run. Titles, labels and options of vendors are left out, because no decision of the runtime depends on
 * them; so are the values of variables, because a hash of a short value can be guessed.
 */
export function fillHashes(agents: ReadonlyMap<string, ResolvedAgent>): void {
  const own = new Map<string, string>()
  for (const [name, agent] of agents) own.set(name, hashOf(described(agent)))
  for (const [name, agent] of agents) {
    const relatives = new Set([name])
    for (const each of relatives)
      for (const next of nextAgents(agents.get(each))) relatives.add(next)
    const open: { -readonly [Key in keyof ResolvedAgent]: ResolvedAgent[Key] } = agent
    open.hash = hashOf([name, [...relatives].sort().map((each) => own.get(each) ?? '')])
  }
}

function described(agent: ResolvedAgent): unknown {
  const { definition, type, name, maxSessionTurns } = agent
  const { budget, taskClass, env = {} } = definition
  const variables = Object.keys(env).sort()
  const sides = sidesOf(agent).map(describedSide)
  return { name, type, maxSessionTurns, budget, taskClass: taskClass?.name, variables, sides }
}

function describedSide(given: ResolvedSide): unknown {
  const { side, prompt, agent, hooks, maxSteps, stopOnResponse, stopTool } = given
  const isHandled = given.handler !== undefined
  const { stopToolResponseProperty, sessionStop, sessionFail, sessionStatus } = given
  const { name, env = {}, output, toolChoice, reasoning, compaction } = prompt.definition
  const { includeChat, includePastTools, parallelToolCalls } = prompt.definition
  return {
    side,
    agent: agent?.id,
    isHandled,
    limits: [maxSteps, stopOnResponse],
    tools: [stopTool, stopToolResponseProperty, sessionStop, sessionFail, sessionStatus],
    hooks: hooks.map(({ id, hook }) => [hook, id]),
    prompt: {
      name,
      settings: [toolChoice, reasoning, compaction],
      history: [includeChat, includePastTools, parallelToolCalls],
      parts: prompt.parts,
      env: Object.keys(env).sort(),
      output: output && toJsonSchema(output),
      models: prompt.models.map(({ name, model }) => [name, model.provider.name, model.modelId]),
      variables: prompt.variables,
      tools: prompt.tools.map(describedTool),
    },
  }
}

function describedTool(tool: ResolvedTool): unknown {
  if (tool.kind !== 'tool') return tool
  const { name, config } = tool
  const { description, parameters, governance, run } = tool.tool
  const isRunHere = run !== undefined
  const { risk } = governance
  return { name, description, parameters, risk, isRunHere, options: config?.options }
}

/** Hashes the JSON of a value. JSON leaves functions out and writes infinite limits as null. */
function hashOf(value: unknown): string {
  return sha256Hex(JSON.stringify(value)).slice(0, DIGITS)
}
