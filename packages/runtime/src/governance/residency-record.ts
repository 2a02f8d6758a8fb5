import type { JsonObject } from '@skein/base'
import { defineTaskClass, governor } from '@skein/governance'
import type { SessionGovernorsOptions } from './session-governors.ts'
import { SessionJournal } from './session-journal.ts'
import type { ThreadHead } from '../store/head.ts'
import { sessionRequestId, THREAD_MEMBER } from './session-identity.ts'
import type { GovernanceWrites } from './session-governor.ts'

/** Where a request to a model was processed under a rule of residency, or that it was not sent. */
export interface ResidencyDecision {
  readonly head: Pick<ThreadHead, 'id' | 'rootId' | 'tenant'>
  readonly agent: string
  /** The rule, the model and its region, and the models that were left out, as the combination reports them. */
  readonly facts: JsonObject
}

const RESIDENCY = defineTaskClass({ name: 'residency', needs: [], verifiers: [], tools: [] })

/** Returns the lines of the audit log that record where a request was processed. They are a request of their own. */
export async function recordResidency(
  { id, clock, ids, store }: Pick<SessionGovernorsOptions, 'id' | 'clock' | 'ids' | 'store'>,
  { head, agent, facts }: ResidencyDecision,
): Promise<GovernanceWrites> {
  const requestId = sessionRequestId({ threadId: head.id, sessionId: `residency ${ids()}` })
  const journal = new SessionJournal({ store, tree: head.rootId, requestId, flush: undefined })
  const identity = {
    agent_id: agent,
    owner_id: head.tenant || 'default',
    control_class: 'autonomous',
    [THREAD_MEMBER]: head.id,
    'skein:residency': facts,
  } as const
  const governs = governor({
    id,
    clock,
    ids,
    audit: journal,
    payloads: journal,
    tasks: [RESIDENCY],
  })
  const init = { identity, input: facts, request_id: requestId }
  const { state } = await governs.run(RESIDENCY, init, async () => facts)
  if (state !== 'deliver')
    throw new Error(`Where a request was processed could not be recorded: ${state}.`)
  return { ...journal.take(), events: [] }
}
