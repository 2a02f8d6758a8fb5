import type { JsonValue } from '@skein/base'
import type { TaskClass } from '../contract/define-task-class.ts'
import { receiptOf } from './fail.ts'
import type { GovernorCore } from './options.ts'
import { collectEvidence } from './verify.ts'
import { GovernanceError, reason } from '../contract/reason.ts'
import type { VerificationReport } from '../contract/evidence.ts'
import { conflict, GovernedRequest, loadState, type LoadedState } from './request.ts'
import type { Delivered, FailedSafe, Undo } from '../contract/run.ts'
import { toUndo, type FindOwner } from './undo.ts'

/** A request made again from its journal. */
export function reviveRequest(
  core: GovernorCore,
  { state, first, last }: LoadedState,
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

/** Finds the requests whose writes are to be inverted: this one, or children of it. */
export function ownersOf(request: GovernedRequest): FindOwner {
  return async (requestId) => {
    if (requestId === request.state.request_id) return request
    for (const child of request.children.values()) {
      const found = await ownersOf(child)(requestId)
      if (found) return found
    }
    const loaded = await loadState(request.core, requestId)
    return loaded && reviveRequest(request.core, loaded)
  }
}

/** The result of a request that has ended, read back from its journal. */
export async function closedResult(
  request: GovernedRequest,
): Promise<Delivered<JsonValue> | FailedSafe> {
  const { state } = request
  const receipt = await receiptOf(request)
  if (state.failed) {
    const { reasons, missing } = state.failed
    const undo = await readUndo(request)
    return { state: 'fail_safe', outcome: 'uncertain', reasons, missing, undo, receipt }
  }
  if (!state.delivered) throw conflict(request, 'it has not ended')
  const value = await request.fetch(state.delivered.hash)
  const { evidence } = await collectEvidence(request)
  const reports: VerificationReport[] = []
  for (const { report_hash } of state.reports) {
    // What was written under this hash is a report of ours.
    reports.push((await request.fetch(report_hash)) as unknown as VerificationReport)
  }
  return { state: 'deliver', outcome: 'success', value, evidence, reports, receipt }
}

async function readUndo(request: GovernedRequest): Promise<Undo[]> {
  const findOwner = ownersOf(request)
  const undo: Undo[] = []
  for (const one of request.state.failed?.undo ?? []) {
    const owner = await findOwner(one.request_id)
    undo.push(toUndo(one, owner?.state.calls.get(one.call), one))
  }
  return undo
}
