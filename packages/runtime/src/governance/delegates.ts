import type { Envelope } from '@skein/governance'
import type { ResolvedAgent } from '../definitions/resolved.ts'
import { nextTurn } from '../store/next-turn.ts'
import type { Store } from '../store/store.ts'
import type { ThreadLifecycle } from '../store/head.ts'
import { CALLERS_MEMBER, THREAD_MEMBER } from './session-identity.ts'

/** A session of another thread that worked for a session: of a subagent, or of a subagent of that. */
export interface DelegateSession {
  readonly requestId: string
  readonly threadId: string
  /** The name of the agent, and its definition if it is known here. */
  readonly agentName: string
  readonly agent: ResolvedAgent | undefined
  /** Whether its thread works now. */
  readonly isActive: boolean
}

interface DelegateQuery {
  readonly store: Store
  readonly agents: ReadonlyMap<string, ResolvedAgent>
  /** The root thread, whose audit log has the requests of all its descendants. */
  readonly tree: string
}

/** How many lines of an audit log are read before other work of the process gets its turn. */
const PAGE = 500

const ACTIVE: ReadonlySet<string> = new Set<ThreadLifecycle>([
  'queued',
  'running',
  'stopping',
  'waiting',
])

/**
 * Finds the sessions that worked for a request, from the identities in the audit log of the tree: `from` is the place
 * of the request's first line, or 0 if others may be before it.
 */
export async function findDelegates(
  query: DelegateQuery,
  { requestId, from }: { readonly requestId: string; readonly from: number },
): Promise<readonly DelegateSession[]> {
  const sessions = new Map<string, DelegateSession>()
  for (let next = from; ; next += PAGE) {
    const rows = await query.store.audit(query.tree, { from: next, limit: PAGE })
    for (const { line } of rows) {
      if (!line.includes(CALLERS_MEMBER) || !line.includes(requestId)) continue
      const envelope = JSON.parse(line) as Envelope // a governor wrote it
      const callers = String(envelope.identity[CALLERS_MEMBER] ?? '').split(' ')
      if (sessions.has(envelope.request_id) || !callers.includes(requestId)) continue
      sessions.set(envelope.request_id, await toDelegate(query, envelope))
    }
    if (rows.length < PAGE) return [...sessions.values()]
    await nextTurn()
  }
}

/** Finds the session that made a request; undefined if the log has no such request. */
export async function findDelegate(
  query: DelegateQuery,
  requestId: string,
): Promise<DelegateSession | undefined> {
  const [row] = await query.store.audit(query.tree, { requestId, limit: 1 })
  return row && toDelegate(query, JSON.parse(row.line) as Envelope)
}

async function toDelegate(
  { store, agents }: DelegateQuery,
  { request_id: requestId, identity }: Envelope,
): Promise<DelegateSession> {
  const threadId = String(identity[THREAD_MEMBER] ?? '')
  const { agent_id: agentName } = identity
  const head = await store.head(threadId)
  const isActive = ACTIVE.has(head?.lifecycle ?? '')
  return { requestId, threadId, agentName, agent: agents.get(agentName), isActive }
}
