import type { TaskClass } from '../contract/governed.ts'
import { GovernanceError, reason } from '../contract/reason.ts'
import { type GovernorState, isClosed, openState } from '../journal/governor-state.ts'
import { identityOf, readItem } from '../journal/read-item.ts'
import type { JournalRecord } from '../journal/journal.ts'
import { reduceJournal } from '../journal/reduce.ts'
import type { GovernorCore } from './options.ts'
import { conflict, GovernedRequest } from './request.ts'

/** The state of a request, computed from its journal, with the indices of its first and last entry. */
export interface LoadedState {
  readonly state: GovernorState
  readonly first: number
  last: number
  /** The place in the log where each write last changed (it began, or its effect was recorded), by call id. */
  readonly writes: Map<string, number>
}

/** Reads one request from the journal; undefined when the journal has no such request. */
export async function loadState(
  core: GovernorCore,
  requestId: string,
): Promise<LoadedState | undefined> {
  return (await fold(core.audit.read({ requestId }), true)).get(requestId)
}

/** Reads all requests of the journal that have not ended. */
export async function loadOpen(core: GovernorCore): Promise<LoadedState[]> {
  return [...(await fold(core.audit.read(), false)).values()]
}

/**
 * Computes one state per request from journal records. Without `keepsClosed`, requests that have ended are
 * dropped, so that memory grows with the number of open requests and not with the size of the log.
 */
async function fold(
  records: AsyncIterable<JournalRecord>,
  keepsClosed: boolean,
): Promise<Map<string, LoadedState>> {
  const requests = new Map<string, LoadedState>()
  for await (const record of records) {
    const item = readItem(record)
    const request = requests.get(item.request_id)
    if (request) {
      reduceJournal(request.state, item)
      request.last = record.index
      if (item.type === 'call_started' || item.type === 'call_settled')
        request.writes.set(item.data.call, record.index)
      if (!keepsClosed && isClosed(request.state)) requests.delete(item.request_id)
    } else if (item.type === 'opened') {
      const state = openState(item, identityOf(record.envelope))
      const { index } = record
      requests.set(item.request_id, { state, first: index, last: index, writes: new Map() })
    }
  }
  return requests
}

/**
 * Creates a `GovernedRequest` from a state that was loaded from the journal. Throws if the task class is
 * not known.
 */
export function reviveRequest(
  core: GovernorCore,
  { state, first, last }: Pick<LoadedState, 'state' | 'first' | 'last'>,
  given?: TaskClass,
  parent?: GovernedRequest,
): GovernedRequest {
  const task = given ?? core.tasks.get(state.opened.task)
  if (!task || task.name !== state.opened.task) {
    throw new GovernanceError(
      `Request ${state.request_id} is of the task class "${state.opened.task}", which is not known here.`,
      [reason('STATE_CONFLICT', state.opened.task)],
      { hint: 'Name it in governor({ tasks }).' },
    )
  }
  core.tasks.set(task.name, task)
  const request = new GovernedRequest(core, task, state, parent)
  request.first = first
  request.last = last
  return request
}

/**
 * Throws for a child that has not ended. Only its parent can continue it, because the policies and limits of
 * the parent bind it.
 */
export function assertOutermost(request: GovernedRequest): GovernedRequest {
  const { parent } = request.state.opened
  if (parent === undefined || isClosed(request.state)) return request
  throw conflict(request, `it is a child of ${parent}`)
}
