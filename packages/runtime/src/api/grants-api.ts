import type { StandingGrant, ThreadGrants } from '../contract/thread-grants.ts'
import { RuntimeError } from '../contract/error.ts'
import type { GrantMade } from '../contract/event.ts'
import { type KernelState, registryOf } from '../state/kernel-state.ts'
import { type ApiContext, load } from './api-context.ts'
import { checkLabel } from './labels.ts'
import { editThread, isOver } from './edit-thread.ts'
import type { LoadedThread } from '../state/fold-cache.ts'

/** How many threads are read at a time. */
const PAGE = 1000

/** How many grants of a thread may be in force at the same time. */
const MAX_GRANTS = 50

/** Creates the functions for standing grants: approvals in advance for all calls of a tool in a thread. */
export function grantsApi(context: ApiContext): ThreadGrants {
  return {
    async list(threadId) {
      const { state } = await load(context, threadId)
      return [...state.grants.values()].map((one) => grantInfo(one, context)).toReversed()
    },
    async all({ limit = PAGE, ...query } = {}) {
      const now = context.clock.now()
      const grants: Awaited<ReturnType<ThreadGrants['all']>>[number][] = []
      for (let offset = 0; ; offset += PAGE) {
        const page = { ...query, grantedAfter: now, sort: 'oldest', limit: PAGE, offset } as const
        const heads = await context.store.list(page)
        for (const { id: threadId, agent, title, firstWords } of heads) {
          const thread = await context.folds.load(threadId)
          if (!thread || isOver(thread)) continue
          for (const one of thread.state.grants.values()) {
            const info = grantInfo(one, context)
            if (info.status === 'active')
              grants.push({ ...info, threadId, agent, title: title ?? firstWords })
          }
        }
        if (heads.length < PAGE) break
      }
      const end = ({ expiresAt }: StandingGrant): number => Date.parse(expiresAt)
      return grants.toSorted((a, b) => end(a) - end(b)).slice(0, limit)
    },
    async make(threadId, wanted) {
      const { tool } = wanted
      checkLabel(tool, 'The name of the tool')
      const target = { threadId, point: 'make_grant' }
      const { result } = await editThread(context, target, async (thread) => {
        const risk = wanted.risk ?? declaredRisk(context, thread.state, tool)
        const { made, ...rest } = await newGrant(context, thread, { ...wanted, risk })
        const info = grantInfo({ made, revoked: undefined }, context)
        return { result: info, change: { append: [made] }, ...rest }
      })
      return result
    },
    async revoke(threadId, grantId, { by }) {
      await editThread(context, { threadId, point: 'revoke_grant' }, async ({ head, state }) => {
        const grant = state.grants.get(grantId)
        if (!grant)
          throw new RuntimeError(`Thread ${threadId} has no grant ${grantId}.`, {
            code: 'GRANT_NOT_FOUND',
            hint: 'A grant belongs to one thread; `grants.list` lists those of a thread.',
          })
        if (grant.revoked) return { result: undefined }
        const change = { head, agent: state.agent, by, grant: grant.made, done: 'revoked' } as const
        const writes = await context.governors.recordGrant(change)
        const append = [{ type: 'grant_revoked', at: context.at(), grantId, by } as const]
        return { result: undefined, change: { append }, ...writes }
      })
    },
  }
}

/**
 * Signs a grant and returns the event that records it, with the lines of the audit log. `state` must be
 * computed from the whole log to which the event is then appended.
 */
export async function newGrant(
  context: ApiContext,
  { head, state }: LoadedThread,
  { tool, forMs, by, reason, risk }: Parameters<ThreadGrants['make']>[1] & Pick<GrantMade, 'risk'>,
): Promise<
  { readonly made: GrantMade } & Awaited<ReturnType<ApiContext['governors']['recordGrant']>>
> {
  const refuse = (message: string, hint: string): RuntimeError =>
    new RuntimeError(message, { code: 'ANSWER_INVALID', hint })
  if (by === state.agent)
    throw refuse(`"${by}" may not allow its own calls.`, 'Let a person make the grant.')
  const expiresAt = context.clock.now() + forMs
  const active = [...state.grants.values()].filter(
    (one) => grantInfo(one, context).status === 'active',
  )
  if (active.length >= MAX_GRANTS)
    throw refuse(`The thread has ${MAX_GRANTS} grants already.`, 'Revoke one that is no longer needed.')
  const grantId = context.ids()
  const facts = { threadId: head.id, tool, risk, by, expiresAt, grantId }
  const grant = await context.governors.signGrant(facts)
  const why = reason === undefined ? {} : { reason }
  const event: GrantMade = {
    type: 'grant_made',
    at: context.at(),
    grantId,
    tool,
    risk,
    by,
    expiresAt: new Date(expiresAt).toISOString(),
    ...why,
    grant,
  }
  const change = { head, agent: state.agent, by, grant: event, done: 'made' } as const
  return { made: event, ...(await context.governors.recordGrant(change)) }
}

/**
 * Returns the risk of a write tool of the thread's agent. Throws for other tools, because they need no grant.
 */
function declaredRisk(context: ApiContext, state: KernelState, tool: string): GrantMade['risk'] {
  const { a, b } = registryOf(context.registry, state).agent(state.agent)
  const definition = [a, b].flatMap((side) => side?.prompt.tools ?? []).find(({ name }) => name === tool)
  const risk = definition?.kind === 'tool' ? definition.tool.governance.risk : undefined
  if (risk === 'write_low_risk' || risk === 'write_high_risk') return risk
  throw new RuntimeError(
    definition
      ? `"${tool}" needs no approval, so there is nothing to grant.`
      : `The agent "${state.agent}" has no tool "${tool}".`,
    {
      code: 'ANSWER_INVALID',
      hint: 'Name a tool of the agent that the thread has now and that writes.',
    },
  )
}

function grantInfo(
  {
    made,
    revoked,
  }: Pick<NonNullable<ReturnType<KernelState['grants']['get']>>, 'made' | 'revoked'>,
  { clock }: ApiContext,
): StandingGrant {
  const { type: _, grant: __, ...facts } = made
  const isOver = Date.parse(made.expiresAt) <= clock.now()
  return {
    ...facts,
    status: revoked ? 'revoked' : isOver ? 'expired' : 'active',
    revoked: revoked && { by: revoked.by, at: revoked.at },
  }
}
