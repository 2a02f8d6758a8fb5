import { AssistantMessage, UPPError } from '@skein/ai'
import type { DrainContext } from '../context/drain-context.ts'
import type { RuntimeMessageAdded } from '../contract/event.ts'
import { logFailure, logLoss } from './log.ts'
import { answerOf } from './answer-message.ts'
import type { Asking } from './asking.ts'

/**
 * Stores the text of the model that had arrived when the user pressed stop. Its tool calls are dropped,
 * because they never ran.
 */
export async function keepPartial(
  context: DrainContext,
  asking: Asking,
  error: unknown,
): Promise<void> {
  const answer = await partialAnswer(context, asking, error)
  if (!answer) return
  const log = logFailure(context, asking, error)
  await context.commit('partial_answer', { events: [...log.events, answer], blobs: log.blobs })
}

/** Like `keepPartial`, but a new message ended the turn: work continues, so the cost of the answer is recorded. */
export async function keepCut(
  context: DrainContext,
  asking: Asking,
  error: UPPError,
  commit: DrainContext['commit'] = (point, write) => context.commit(point, write),
): Promise<void> {
  const answer = await partialAnswer(context, asking, error)
  const log = answer ? logFailure(context, asking, error) : logLoss(context, asking, error)
  const events = answer ? [...log.events, answer] : log.events
  await commit('partial_answer', { kind: 'outcome', events, blobs: log.blobs })
  await context.catchUp() // the message that cuts the turn may not be folded yet
}

/** Returns the text that had arrived, as a message without calls; undefined if no text had arrived. */
async function partialAnswer(
  context: DrainContext,
  asking: Asking,
  error: unknown,
): Promise<RuntimeMessageAdded | undefined> {
  const partial = error instanceof UPPError ? error.turn : undefined
  if (!partial || asking.asked?.isPrivate) return undefined
  const { id, timestamp, text: arrived } = partial.response
  // The end of the text may be the first part of a secret, which the redactor cannot recognise; it holds that end back.
  const text = context.redactor()?.stream().push(arrived) ?? arrived
  if (text === '') return undefined
  const response = new AssistantMessage(text, undefined, { id, timestamp })
  return answerOf(context, asking, { turn: { ...partial, response: response } })
}
