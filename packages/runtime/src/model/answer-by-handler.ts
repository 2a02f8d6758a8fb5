import { AssistantMessage, messageToJSON } from '@skein/ai'
import { messageOf, withTimeLimit } from '@skein/base'
import type { DrainContext } from '../context/drain-context.ts'
import { RuntimeError } from '../contract/error.ts'
import { checksAnswers, type ResolvedSide } from '../definitions/resolved.ts'
import { afterStored, beforeCreate, hookedWriteOf } from '../hooks/hooks.ts'
import { endSession } from '../session/end-session.ts'
import type { SideTurn, Step } from '../state/kernel-state.ts'
import { viewOf } from './view.ts'

/** How long a handler may take, in ms: code that answers in a conversation instead of a model. */
const HANDLER_MS = 60_000

/**
 * Lets a handler, code in place of a model, answer. The answer is committed together with the handler's changes to
 * the thread. If the process dies before that, the handler runs again; if it throws, the session fails.
 */
export async function answerByHandler(
  context: DrainContext,
  side: ResolvedSide,
  { turn, step }: { readonly turn: SideTurn; readonly step: Step },
): Promise<void> {
  const { environment, signal, state } = context
  const name = `${context.agent.name}/${side.side}`
  const question = viewOf(state, side.side, side.prompt).at(-1)
  const message = question?.type === 'user' ? question.text : ''
  const facade = context.facade(side)
  let text: string
  try {
    const work = (limited: AbortSignal): Promise<string | void> => {
      const input = { message, signal: limited, idempotencyKey: step.id }
      const run = async () => side.handler!(facade.state, input)
      return context.runUserCode({ kind: 'handler', name, id: step.id }, run)
    }
    text = (await withTimeLimit(work, { limitMs: HANDLER_MS, signal })) ?? ''
  } catch (error) {
    if (signal.aborted) return // the next drain runs the handler again
    const problem = context.redactor()?.text(messageOf(error)) ?? messageOf(error)
    const ending = { outcome: 'failed', reason: 'handler_error' } as const
    return endSession(context, { ...ending, message: `The handler of ${name} failed: ${problem}` })
  } finally {
    context.hide(facade.secrets())
  }
  const write = await hookedWriteOf(context, facade.takeChanges(), side)
  const isEnded = write.events.some(({ type }) => type === 'session_stop_requested')
  if (text.trim() === '' && !isEnded) {
    const ending = { outcome: 'failed', reason: 'handler_error' } as const
    return endSession(context, { ...ending, message: `The handler of ${name} returned no text.` })
  }
  const at = context.at()
  const reply = new AssistantMessage(text, undefined, {
    id: environment.ids(),
    timestamp: new Date(at),
  })
  const answer = await beforeCreate(context, side, {
    type: 'message_added',
    at,
    turnId: turn.id,
    stepId: step.id,
    side: side.side,
    agentId: name,
    message: messageToJSON(reply),
    delivery: checksAnswers(context.agent) ? 'pending' : undefined,
  })
  const events = [...write.events, answer]
  try {
    await context.commit('handler_end', { ...write, events, kind: 'outcome' })
  } catch (error) {
    // Another writer has changed a value that the handler had read, so the handler runs again.
    if (!(error instanceof RuntimeError && error.code === 'STATE_CONFLICT')) throw error
    return context.catchUp()
  }
  await afterStored(context, side, events)
}
