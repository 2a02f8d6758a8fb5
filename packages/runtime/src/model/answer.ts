import { commitResidency, residencyOf } from './residency.ts'
import { retryWhenLogMoved } from '../commit/log-moved.ts'
import type { CommitWrite, Write } from '../context/write.ts'
import { type Turn, ErrorCode, UPPError } from '@skein/ai'
import type { JsonObject } from '@skein/base'
import type { DrainContext } from '../context/drain-context.ts'
import type { InferenceRecorded, RuntimeEvent, RuntimeMessageAdded } from '../contract/event.ts'
import { actsOn } from '../hooks/hook-kinds.ts'
import { afterStored } from '../hooks/hooks.ts'
import { cutOf } from '../state/kernel-state.ts'
import { logAnswer } from './log.ts'
import { LiveStep } from './live-step.ts'
import { OwnCallIds } from './own-call-ids.ts'
import type { Asking } from './asking.ts'
import { askAgain } from './ask-again.ts'
import { keepCut } from './partial-answer.ts'
import { type Basis, isOutdated } from './request-basis.ts'
import { answerOf } from './answer-message.ts'

export async function commitAnswer(
  context: DrainContext,
  asking: Asking,
  {
    turn,
    live,
    callIds,
    basis,
  }: {
    readonly turn: Turn
    readonly live: LiveStep
    readonly callIds: OwnCallIds
    readonly basis: Basis
  },
): Promise<void> {
  await commitResidency(context, residencyOf(turn))
  const answer = await answerOf(context, asking, { turn, callIds })
  const log = logAnswer(context, asking.log, {
    turn,
    messageId: answer.message.id,
    costUsd: answer.costUsd,
    firstTokenMs: live.firstTokenMs,
  })
  const { usage } = answer
  const events = [...log.events, ...recorded(asking, answer, turn)]
  // The answer is written with the commit that starts its first call or ends the step, unless user code acts on
  // it before that (the strategy of an `agent()`, a hook for stored messages or refused calls), or several
  // calls run in parallel: a late write might be refused, because of an edit, after the first call has started.
  const { response } = turn
  const isParallel = asking.side.prompt.definition.parallelToolCalls === true
  const mayJoin =
    !asking.asked &&
    !(isParallel && (response.toolCalls?.length ?? 0) > 1) &&
    !actsOn('answer', asking.side.hooks)
  /** Returns true if the answer was stored; false if it was dropped because a message of its request was edited. */
  const storeOnce = async (commit: CommitWrite, joins: boolean): Promise<boolean> => {
    if (isOutdated(context, basis)) {
      const message = 'A message of this request was edited, so its answer was dropped.'
      await askAgain(context, asking, cancelledBy(message, asking, turn), commit)
      return false
    }
    if (cutOf(context.state)) {
      const message = 'A message cut the answer, so its calls were dropped.'
      await keepCut(context, asking, cancelledBy(message, asking, turn), commit)
      return false
    }
    const { tokens, costUsd } = context.state.usage
    const head = {
      tokens: tokens + (usage?.input_tokens ?? 0) + (usage?.output_tokens ?? 0),
      costUsd: costUsd + (answer.costUsd ?? 0),
    }
    const joinsNext = joins ? (again: CommitWrite) => store(again, false) : undefined
    // `requiresUnchangedLog`: another writer may just have edited a message of the request, so the log must be unchanged.
    const write: Write = {
      kind: 'outcome',
      events,
      blobs: log.blobs,
      head,
      requiresUnchangedLog: true,
    }
    await commit('answer', { ...write, joinsNext })
    return true
  }
  const store = (commit: CommitWrite, joins: boolean): Promise<boolean> =>
    retryWhenLogMoved(() => storeOnce(commit, joins), { thread: context })
  if (!(await store((point, write) => context.commit(point, write), mayJoin))) return
  if (!asking.asked?.isPrivate) await afterStored(context, asking.side, [answer])
}

/**
 * Returns the events that record an answer. For an `agent()` they include the data with which its
 * strategy can be run again.
 */
function recorded(
  { asked, turn: { id: turnId }, step }: Asking,
  answer: RuntimeMessageAdded,
  turn: Turn,
): readonly RuntimeEvent[] {
  if (!asked) return [answer]
  const { record, isPrivate } = asked
  const { at, side, message, costUsd } = answer
  const { raw: _raw, ...usage } = turn.usage
  const inference: InferenceRecorded = {
    type: 'inference_recorded',
    at,
    turnId,
    stepId: step.id,
    side,
    ...record,
    messageId: isPrivate ? undefined : message.id,
    message: isPrivate ? message : undefined,
    stopReason: turn.stopReason,
    usage: usage as JsonObject,
    costUsd: isPrivate ? costUsd : undefined,
  }
  return isPrivate ? [inference] : [inference, answer]
}

export function cancelledBy(message: string, { model: { model } }: Asking, turn: Turn): UPPError {
  const origin = { provider: model.provider.name, modality: 'llm' } as const
  const cause = new UPPError(message, { code: ErrorCode.Cancelled, ...origin })
  cause.turn = turn
  return cause
}
