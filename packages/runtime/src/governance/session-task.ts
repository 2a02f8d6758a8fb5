import type { JsonValue } from '@skein/base'
import {
  defineTaskClass,
  governed,
  type GovernedContext,
  type GovernedTool,
  type TaskClass,
} from '@skein/governance'
import type { ResolvedAgent } from '../definitions/resolved.ts'
import type { ToolDefinition } from '../definitions/types.ts'
import type { GovernedSession } from './session-governor.ts'

/** Runs a tool as the inverse of a write. */
export type Invert = (
  tool: ToolDefinition,
  args: JsonValue,
  context: GovernedContext,
) => Promise<unknown>

/** The task class of a session: its agent's, over its tools. Built once per agent. */
export type SessionTasks = (session: Pick<GovernedSession, 'agent' | 'tools'>) => TaskClass

export function createSessionTasks(invert: Invert): SessionTasks {
  const known = new WeakMap<
    ResolvedAgent,
    { readonly tools: readonly ToolDefinition[]; readonly task: TaskClass }
  >()
  return ({ agent, tools }) => {
    const before = known.get(agent)
    if (before && isSameList(before.tools, tools)) return before.task
    const task = buildTask(agent, tools, invert)
    known.set(agent, { tools: [...tools], task })
    return task
  }
}

/** Sessions of agents without a task class: only the gates before calls count, nothing bars delivery. */
const PLAIN = { name: 'session', needs: [], verifiers: [], acceptInDoubt: true } as const

function buildTask(
  { definition }: ResolvedAgent,
  tools: readonly ToolDefinition[],
  invert: Invert,
): TaskClass {
  // Both sides may list the same tool.
  const byName = new Map(tools.map((tool) => [tool.name, tool]))
  const { taskClass = PLAIN } = definition
  const list = [...byName.values()].map((tool) => toGoverned(tool, invert))
  return defineTaskClass({ ...taskClass, tools: list })
}

/** The governor never makes the calls of a session, it only inverts them: that is all `run` is for. */
function toGoverned(tool: ToolDefinition, invert: Invert): GovernedTool {
  const { name, description, parameters, governance } = tool
  const run = (args: JsonValue, context: GovernedContext): Promise<unknown> =>
    invert(tool, args, context)
  // Arguments of any tool are JSON here; its own `run` checks them.
  return governed(
    { name, description, parameters, run } as Parameters<typeof governed<JsonValue, unknown>>[0],
    governance as Parameters<typeof governed<JsonValue, unknown>>[1],
  ) as GovernedTool
}

function isSameList(a: readonly unknown[], b: readonly unknown[]): boolean {
  return a.length === b.length && a.every((one, index) => one === b[index])
}
