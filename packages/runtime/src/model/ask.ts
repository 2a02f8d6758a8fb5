import { UPPError } from '@skein/ai'
import { linkAbort } from '@skein/base'
import type { DrainContext } from '../context/drain-context.ts'
import { cutOf } from '../state/kernel-state.ts'
import { TimeLimit } from './time-limit.ts'
import { LiveStep } from './live-step.ts'
import { OwnCallIds } from './own-call-ids.ts'
import { commitAnswer } from './answer.ts'
import { type Basis, isBuiltFrom } from './request-basis.ts'
import { keepCut } from './partial-answer.ts'
import { askAgain } from './ask-again.ts'
import { modelFailed } from './model-failed.ts'
import type { Asking } from './asking.ts'

/** Sends the request, streams the answer to subscribers, and commits the answer or the failure. */
export async function askModel(context: DrainContext, asking: Asking): Promise<void> {
  const callIds = new OwnCallIds(context)
  const live = new LiveStep(context, asking.turn.id, callIds)
  const { environment, head, state } = context
  const basis: Basis = { seq: state.seq, messages: asking.messages }
  const controller = new AbortController()
  const unlink = linkAbort([context.signal], controller)
  let why: 'edited' | 'cut' | undefined
  const timeLimit = new TimeLimit(environment, controller)
  const unlisten = environment.onEdit(head.id, (event) => {
    if (event.type === 'message_queued') why = 'cut'
    else if (isBuiltFrom(basis, event.messageId)) why ??= 'edited'
    if (why) controller.abort()
  })
  try {
    if (cutOf(state)) return
    const events = asking.instance.infer(asking.messages, { signal: controller.signal })
    let batch = await events.next()
    for (; !batch.done; batch = await events.next()) {
      timeLimit.moved()
      if (!asking.asked?.isPrivate) live.push(batch.value)
    }
    timeLimit.end()
    live.end()
    await commitAnswer(context, asking, { turn: batch.value, live, callIds, basis })
  } catch (error) {
    const isOurs = why && !context.signal.aborted && error instanceof UPPError
    if (isOurs && why === 'edited') await askAgain(context, asking, error)
    else if (isOurs) await keepCut(context, asking, error)
    else await modelFailed(context, asking, timeLimit.reached(asking.model, error) ?? error)
  } finally {
    timeLimit.end()
    unlisten()
    unlink()
  }
}
