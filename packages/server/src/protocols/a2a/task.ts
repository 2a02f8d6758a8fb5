import type { ThreadIdentity } from '../../operations/thread-identity.ts'
import type { JsonObject } from '@skein/base'
import type { Runtime, SessionResult } from '@skein/runtime'
import { TaskFold, type TaskState } from './task-fold.ts'
import type { TaskStart } from './task-id.ts'
import { untilSettled } from '../chat/until-settled.ts'
import { restingResult } from '../json-rpc/resting-result.ts'

/** A task, with what it waits for. */
export interface FoundTask {
  /** The task as JSON of A2A 1.0. */
  readonly task: JsonObject
  readonly state: TaskState
  readonly isOver: boolean
  readonly waiting: SessionResult['waiting']
}

const PAGE = 1000

/** Computes a task from the log of its thread. Undefined when the thread has no such message. */
export async function findTask(
  runtime: Runtime,
  thread: ThreadIdentity,
  start: TaskStart,
  { now, historyLength }: { readonly now: number; readonly historyLength?: number | undefined },
): Promise<FoundTask | undefined> {
  const fold = new TaskFold(runtime, thread, start)
  for (let after = start.seq - 1; !fold.isOver;) {
    const page = await runtime.threads.events(thread.id, { after, limit: PAGE })
    for (const { event } of page) if (!fold.isOver) fold.push(event)
    if (page.length < PAGE) break
    after = page.at(-1)!.seq
  }
  if (!fold.isKnown) return undefined
  const result = fold.isOver
    ? undefined
    : await restingResult(runtime, await runtime.threads.head(thread.id), now)
  const isWaiting = result?.outcome === 'waiting'
  if (isWaiting) fold.state = 'INPUT_REQUIRED'
  // The runtime has given up the thread, so no event ends the session. The task is marked as failed here.
  if (result?.reason === 'drain_failed') fold.fail(result.text)
  const waiting = isWaiting ? result.waiting : []
  return {
    task: fold.task(waiting, historyLength),
    state: fold.state,
    isOver: fold.isOver,
    waiting,
  }
}

/**
 * Streams a task as events of A2A 1.0: the task as it is, then its changes until it is over or waits for
 * somebody. The text of the answer is sent again from its beginning, so that a reader may join at any time.
 */
export async function* taskEvents(
  runtime: Runtime,
  thread: ThreadIdentity,
  start: TaskStart,
  { signal, now }: { readonly signal: AbortSignal; readonly now: () => number },
): AsyncGenerator<JsonObject, void> {
  const { seq } = await runtime.threads.head(thread.id)
  const first = await findTask(runtime, thread, start, { now: now() })
  if (!first) return
  yield { task: first.task }
  const fold = new TaskFold(runtime, thread, start)
  const events = untilSettled(runtime, thread.id, { after: String(start.seq - 1), signal })
  try {
    for (;;) {
      const step = await events.next()
      if (step.done) break
      const isOld = Math.trunc(Number(step.value.id)) <= seq
      for (const update of fold.push(step.value.event))
        if (!isOld || 'artifactUpdate' in update) yield update
      if (fold.isOver) break
    }
  } finally {
    await events.return(undefined)
  }
  if (signal.aborted) return
  const last = await findTask(runtime, thread, start, { now: now() })
  const { id, contextId: context, status } = last?.task ?? first.task
  yield { statusUpdate: { taskId: id ?? '', contextId: context ?? '', status: status ?? {} } }
}
