import type { JsonValue } from '@skein/base'
import {
  defineTaskClass,
  governed,
  type GovernedContext,
  type GovernedTool,
  type TaskClass,
} from '@skein/governance'
import type { GovernedSession } from './session-governor.ts'
import type { ResolvedAgent } from '../definitions/resolved.ts'
import type { ToolDefinition } from '../definitions/tool-definition.ts'

/**
 * Returns the rules for a session: the task class of its agent, with the session's tools. Built once per
 * agent.
 */
export type SessionTasks = (session: Pick<GovernedSession, 'agent' | 'tools'>) => TaskClass

/** Creates the function that builds the rules of sessions; `invert` runs a tool in order to undo a write. */
export function createSessionTasks(invert: Invert): SessionTasks {
  const tasks = new WeakMap<
    ResolvedAgent,
    { readonly tools: readonly ToolDefinition[]; readonly task: TaskClass }
  >()
  return ({ agent, tools }) => {
    const before = tasks.get(agent)
    const isSame =
      before?.tools.length === tools.length && tools.every((one, at) => one === before.tools[at])
    if (before && isSame) return before.task
    // Both sides may list the same tool.
    const byName = new Map(tools.map((tool) => [tool.name, tool]))
    const { taskClass = PLAIN } = agent.definition
    const list = [...byName.values()].map((tool) => toGoverned(tool, invert))
    const task = defineTaskClass({ ...taskClass, tools: list })
    tasks.set(agent, { tools: [...tools], task })
    return task
  }
}

/** The task class for agents without their own: only calls are judged, and every result is delivered. */
const PLAIN = { name: 'session', needs: [], verifiers: [], acceptInDoubt: true } as const

/**
 * Converts a tool for the governor. The governor never makes the calls of a session, so it uses `run` only to
 * undo a write.
 */
function toGoverned(tool: ToolDefinition, invert: Invert): GovernedTool {
  const { name, description, parameters, governance } = tool
  const run = (args: JsonValue, context: GovernedContext): Promise<unknown> =>
    invert(tool, args, context)
  // The casts treat all arguments as JSON; the tool's own `run` checks them.
  return governed(
    { name, description, parameters, run } as Parameters<typeof governed<JsonValue, unknown>>[0],
    governance as Parameters<typeof governed<JsonValue, unknown>>[1],
  ) as GovernedTool
}

/** Runs a tool in order to undo a write. */
export type Invert = (
  tool: ToolDefinition,
  args: JsonValue,
  context: GovernedContext,
) => Promise<unknown>
