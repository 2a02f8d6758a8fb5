import { defineTaskClass, governor } from '@skein/governance'
import type { GovernanceWrites } from './session-governor.ts'
import type { SessionGovernorsOptions } from './session-governors.ts'
import { SessionJournal } from './session-journal.ts'
import { THREAD_MEMBER, sessionRequestId } from './session-identity.ts'
import type { GrantMade } from '../contract/event.ts'
import type { ThreadHead } from '../store/head.ts'

/** A grant that was made or revoked. */
export interface GrantChange {
  readonly head: Pick<ThreadHead, 'id' | 'rootId' | 'tenant'>
  readonly agent: string
  readonly by: string
  readonly grant: Pick<GrantMade, 'grantId' | 'tool' | 'risk' | 'expiresAt'>
  readonly done: 'made' | 'revoked'
}

const GRANTING = defineTaskClass({ name: 'standing grant', tools: [], needs: [], verifiers: [] })

/**
 * Writes a grant or its revocation to the audit log, as a request whose identity names the person and the
 * grant.
 */
export async function recordGrant(
  { id, clock, ids, store }: Pick<SessionGovernorsOptions, 'id' | 'clock' | 'ids' | 'store'>,
  { head, agent, by, grant: { grantId, tool, risk, expiresAt }, done }: GrantChange,
): Promise<Pick<GovernanceWrites, 'audit' | 'blobs'>> {
  const requestId = sessionRequestId({ threadId: head.id, sessionId: `grant ${done} ${grantId}` })
  const journal = new SessionJournal({ store, tree: head.rootId, requestId, flush: undefined })
  const facts = { grant: grantId, tool, risk, expires_at: expiresAt, done }
  const identity = {
    agent_id: agent,
    owner_id: head.tenant || 'default',
    user_id: by,
    control_class: 'human-supervised',
    [THREAD_MEMBER]: head.id,
    'skein:grant': facts,
  } as const
  const governs = governor({ id, clock, ids, audit: journal, payloads: journal, tasks: [GRANTING] })
  const init = { identity, input: facts, request_id: requestId }
  const { state } = await governs.run(GRANTING, init, async () => facts)
  if (state !== 'deliver') throw new Error(`The grant ${grantId} could not be recorded: ${state}.`)
  const { audit, blobs } = journal.take()
  return { audit, blobs }
}
