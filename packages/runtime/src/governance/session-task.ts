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

/** The task class of a session: its agent's, over its tools. Built once per agent. */
type SessionTasks = (session: Pick<GovernedSession, 'agent' | 'tools'>) => TaskClass

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

/** The member of an identity that names the thread; grants are bound to it. */
export const THREAD_MEMBER = 'skein:thread'

/** Id of the governed request of a session: its own where that is a UUID, else always the same one. */
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

/** For whom the session acts: the tenant owns it, the thread's owner is its user. */
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
