import type { JsonValue } from '@skein/base'
import type { TaskClass } from '../define-task-class.ts'
import { drive, type Body } from './drive.ts'
import { failSafe } from './fail.ts'
import type { Answers, Waiting } from './governed-run.ts'
import { isClosed } from './governor-state.ts'
import type { ChildData, ChildSettledData } from '../journal-event.ts'
import { newUuid, openRequest } from './open.ts'
import { reason, refusal, type GovernanceError, type Reason } from '../reason.ts'
import { conflict, loadState, type GovernedRequest } from './request.ts'
import { closedResult, ownersOf, reviveRequest } from './revive.ts'
import type { Init } from '../run.ts'
import { settleChild } from './settle-child.ts'

export interface Child {
  readonly id: string
  readonly task: TaskClass
  readonly init: Partial<Pick<Init, 'identity' | 'input'>>
}

/** A nested run (§4.3): its own request in the same log, within the parent's bounds. */
export async function driveChild(
  parent: GovernedRequest,
  child: Child,
  body: Body,
  answers: Answers,
): Promise<{ readonly value: JsonValue } | { readonly waiting: readonly Waiting[] }> {
  if (parent.state.state === 'plan') await parent.move('execute')
  const { id, task } = child
  const known = parent.state.children.get(id)
  if (known && known.task !== task.name) {
    throw conflict(parent, `child ${id} was ${known.task} before`)
  }
  if (known?.settled) return replayChild(parent, known.settled)
  const data = known ?? (await announce(parent, child))
  const request = await enter(parent, child, data)
  const { approve, onChunk } = parent.listeners
  const result = isClosed(request.state)
    ? await closedResult(request)
    : await drive(request, body, { approve, onChunk, answers })
  if (result.outcome === 'pending') return { waiting: toWaiting(result.waiting, result.rejected) }
  if (request.broken) throw request.broken
  await settleChild(parent, request, data)
  if (result.state === 'deliver') return { value: result.value }
  throw childFailed(task.name, result.reasons)
}

function toWaiting(
  requests: readonly Waiting['request'][],
  rejected: readonly Reason[] = [],
): Waiting[] {
  return requests.map((request, index) => {
    const why = rejected[index]
    return { request, ...(why && { rejected: why }) }
  })
}

/** The parent's log names the child before the child's first entry. */
async function announce(parent: GovernedRequest, { id, task }: Child): Promise<ChildData> {
  if (parent.state.opened.limits.depth < 1) {
    const detail = 'limits.depth of the outermost task class bounds it'
    throw refusal(task.name, [reason('DEPTH_EXCEEDED', task.name, detail)])
  }
  const request_id = newUuid(parent.core)
  const trace_id = newUuid(parent.core).replaceAll('-', '')
  const data = { child: id, request_id, trace_id, task: task.name }
  await parent.submit({ type: 'child_opened', data }, { outcome: 'pending', actor: parent.agent })
  return data
}

/** The child's request: opened now, or taken up where its journal ends. */
async function enter(
  parent: GovernedRequest,
  { id, task, init }: Child,
  { request_id, trace_id }: ChildData,
): Promise<GovernedRequest> {
  const loaded = await loadState(parent.core, request_id)
  const opened = loaded
    ? { request: reviveRequest(parent.core, loaded, task, parent), refused: [] }
    : await openRequest(
        parent.core,
        task,
        {
          identity: init.identity ?? parent.state.identity,
          input: init.input ?? (await parent.fetch(parent.state.opened.input_hash)),
          request_id,
          trace_id,
        },
        parent,
      )
  const { request, refused } = opened
  parent.children.set(id, request)
  if (parent.stopped) request.stop(parent.stopped)
  if (refused.length > 0) {
    await failSafe(request, { reasons: refused, missing: [] }, ownersOf(request))
  }
  return request
}

async function replayChild(
  parent: GovernedRequest,
  { hash, task, reasons = [] }: ChildSettledData,
): Promise<{ readonly value: JsonValue }> {
  if (hash === undefined) throw childFailed(task, reasons)
  return { value: await parent.fetch(hash) }
}

function childFailed(task: string, reasons: readonly Reason[]): GovernanceError {
  return refusal(task, [reason('CHILD_FAIL_SAFE', task), ...reasons])
}
