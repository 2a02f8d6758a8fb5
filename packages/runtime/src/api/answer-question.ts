import type { InterruptAnswer } from '@skein/threads'
import type { ApiContext } from './api-context.ts'
import { editThread, isOver, threadIsOver } from './edit-thread.ts'
import { answerEvent, openQuestion, type QuestionPlace } from './open-question.ts'
import type { WaitingItem } from '../contract/waiting-item.ts'
import { callIdOf, findCall } from '../state/calls.ts'
import type { LoadedThread } from '../state/fold-cache.ts'
import { type OpenInterrupt } from '../state/kernel-state.ts'
import type { Commit } from '../store/commit.ts'
import { waitingCount } from '../state/questions.ts'
import { jsonCopy } from '../thread/facade-buffer.ts'

/** Records the answer to a question of the kind `kind`; only the first answer counts. */
export async function answerQuestion(
  context: ApiContext,
  { threadId, interruptId, by }: QuestionPlace,
  kind: WaitingItem['kind'],
  given: InterruptAnswer,
): Promise<void> {
  const copy = jsonCopy(given, {
    subject: `The answer to ${interruptId}`,
    code: 'ANSWER_INVALID',
    maxBytes: context.limits.maxMessageBytes,
  }) as InterruptAnswer // `jsonCopy` keeps the type
  // A thread that is over may still ask whether a call took effect, or about a write that was not undone.
  const target = { threadId, point: 'answer_interrupt', allowsOver: true }
  await editThread(context, target, async (thread) => {
    const { state } = thread
    if (state.isErased) throw threadIsOver(thread)
    const open = state.interrupts.get(interruptId)
    if (isOver(thread) && !open?.isDetached) throw threadIsOver(thread)
    openQuestion(context, state, interruptId, kind)
    const append = [answerEvent(context, { interruptId, by }, copy)]
    const head = { waiting: waitingCount(state, context.clock.now()) - 1 }
    if (open?.isDetached && !open.write) {
      // Nothing waits for the answer. The model gets it as a message with its next request.
      const records = await findingOf(context, thread, open, { answer: copy, by })
      return { result: undefined, change: { append, head }, ...records }
    }
    const wake = { by: context.clock.now() }
    return { result: undefined, change: { append, head, wake } }
  })
}

/**
 * Returns the records of the audit log for what a person found out about a call that has ended. While the session of the
 * call runs there are none: its governor learns of it when the session ends.
 */
async function findingOf(
  context: ApiContext,
  { head, state }: LoadedThread,
  { interrupt: { toolCallId } }: OpenInterrupt,
  { answer: given, by = 'unknown' }: { readonly answer: InterruptAnswer; readonly by?: string },
): Promise<Pick<Commit, 'audit' | 'blobs'>> {
  const { call, entry } = findCall(state, toolCallId) ?? {}
  const place = entry && state.places.get(entry.message.id)
  if (!call || place === undefined || place >= (state.session?.firstEntry ?? Infinity)) return {}
  const value = given.type === 'result' ? given.value : undefined
  const effect = value === 'applied' || value === 'absent' ? value : 'unknown'
  const tool = call.call.toolName
  const { agent } = state
  const callId = callIdOf(state, toolCallId)
  return context.governors.recordFinding({ head, agent, call: callId, tool, found: effect, by })
}
