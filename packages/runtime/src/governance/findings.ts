import { defineTaskClass, governor } from '@skein/governance'
import type { ThreadHead } from '../store/head.ts'
import type { GovernanceWrites } from './session-governor.ts'
import type { SessionGovernorsOptions } from './session-governors.ts'
import { SessionJournal } from './session-journal.ts'
import { THREAD_MEMBER, sessionRequestId } from './session-identity.ts'

/** What was found out about a call in doubt after its session had ended. */
export interface Finding {
  readonly head: Pick<ThreadHead, 'id' | 'rootId' | 'tenant'>
  readonly agent: string
  /** The id of the call for governors. */
  readonly call: string
  readonly tool: string
  readonly found: 'applied' | 'absent' | 'unknown'
  /** The person who found it out; undefined if the tool reported its result late. */
  readonly by: string | undefined
}

const FINDING = defineTaskClass({ name: 'finding', needs: [], verifiers: [], tools: [] })

/**
 * Returns the lines of the audit log that record a finding. The request of the session has ended and takes no more
 * entries, so the finding is a request of its own.
 */
export async function recordFinding(
  { id, clock, ids, store }: Pick<SessionGovernorsOptions, 'id' | 'clock' | 'ids' | 'store'>,
  { head, agent, call, tool, found, by }: Finding,
): Promise<Pick<GovernanceWrites, 'audit' | 'blobs'>> {
  const how = by === undefined ? 'result' : 'person'
  const sessionId = `finding ${how} ${ids()}`
  const requestId = sessionRequestId({ threadId: head.id, sessionId })
  const journal = new SessionJournal({ store, tree: head.rootId, requestId, flush: undefined })
  const facts = { call, tool, found, settled_by: how }
  const identity = {
    agent_id: agent,
    owner_id: head.tenant || 'default',
    ...(by !== undefined && { user_id: by }),
    control_class: 'human-supervised',
    [THREAD_MEMBER]: head.id,
    'skein:finding': facts,
  } as const
  const governs = governor({ id, clock, ids, audit: journal, payloads: journal, tasks: [FINDING] })
  const init = { identity, input: facts, request_id: requestId }
  const { state } = await governs.run(FINDING, init, async () => facts)
  if (state !== 'deliver')
    throw new Error(`What was found about the call ${call} could not be recorded: ${state}.`)
  const { audit, blobs } = journal.take()
  return { audit, blobs }
}
