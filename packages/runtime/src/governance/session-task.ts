import { type JsonValue, sha256Hex } from '@skein/base'
import {
  defineTaskClass,
  governed,
  type GovernedContext,
  type GovernedTool,
  type Identity,
  type TaskClass,
} from '@skein/governance'
import type { ResolvedAgent } from '../definitions/resolved.ts'
import type { ToolDefinition } from '../definitions/types.ts'
import type { GovernedSession } from './session-governors.ts'

/** Runs a tool as the inverse of a write. */
type Invert = (tool: ToolDefinition, args: JsonValue, context: GovernedContext) => Promise<unknown>

/** Returns the task class of a session: that of its agent, with the session's tools. Built once per agent. */
type SessionTasks = (session: Pick<GovernedSession, 'agent' | 'tools'>) => TaskClass

/** Makes the function that builds task classes; `invert` runs tools as inverses. */
export function createSessionTasks(invert: Invert): SessionTasks {
  const known = new WeakMap<
    ResolvedAgent,
    { readonly tools: readonly ToolDefinition[]; readonly task: TaskClass }
  >()
  return ({ agent, tools }) => {
    const before = known.get(agent)
    const isSame =
      before?.tools.length === tools.length && tools.every((one, at) => one === before.tools[at])
    if (before && isSame) return before.task
    // Both sides may list the same tool.
    const byName = new Map(tools.map((tool) => [tool.name, tool]))
    const { taskClass = PLAIN } = agent.definition
    const list = [...byName.values()].map((tool) => toGoverned(tool, invert))
    const task = defineTaskClass({ ...taskClass, tools: list })
    known.set(agent, { tools: [...tools], task })
    return task
  }
}

/** The task class of agents without one: only the gates before calls count, and every result is delivered. */
const PLAIN = { name: 'session', needs: [], verifiers: [], acceptInDoubt: true } as const

/** The governor never makes the calls of a session. It only undoes them, and that is all `run` is for. */
function toGoverned(tool: ToolDefinition, invert: Invert): GovernedTool {
  const { name, description, parameters, governance } = tool
  const run = (args: JsonValue, context: GovernedContext): Promise<unknown> =>
    invert(tool, args, context)
  // Here the arguments of every tool are JSON; its own `run` checks them.
  return governed(
    { name, description, parameters, run } as Parameters<typeof governed<JsonValue, unknown>>[0],
    governance as Parameters<typeof governed<JsonValue, unknown>>[1],
  ) as GovernedTool
}

/** The member of an identity that names the thread. Grants are bound to it. */
export const THREAD_MEMBER = 'skein:thread'

/** Id of the governed request of a session: the session's id if it is a UUID, else a UUID derived from it. */
export function requestIdOf({
  threadId,
  sessionId,
}: Pick<GovernedSession, 'threadId' | 'sessionId'>): string {
  return BARE_UUID.test(sessionId) ? sessionId : uuidOf(`${threadId}\n${sessionId}`)
}

/** W3C trace id of a session. */
export function traceIdOf({
  threadId,
  sessionId,
}: Pick<GovernedSession, 'threadId' | 'sessionId'>): string {
  return sha256Hex(`trace\n${threadId}\n${sessionId}`).slice(0, 32)
}

/** For whom the session acts: the tenant owns the session, and the owner of the thread is its user. */
export function identityOf({ agent, tenant, owner, threadId }: GovernedSession): Identity {
  return {
    agent_id: agent.name,
    owner_id: tenant || 'default',
    ...(owner && { user_id: owner }),
    control_class: 'human-supervised',
    [THREAD_MEMBER]: threadId,
  }
}

const BARE_UUID = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/

/** A UUID of version 8 (RFC 9562 §5.8) from a text. */
function uuidOf(text: string): string {
  const hex = sha256Hex(text)
  const variant = ((Number.parseInt(hex[16]!, 16) & 3) | 8).toString(16)
  const parts = [hex.slice(0, 8), hex.slice(8, 12), `8${hex.slice(13, 16)}`]
  return [...parts, `${variant}${hex.slice(17, 20)}`, hex.slice(20, 32)].join('-')
}
