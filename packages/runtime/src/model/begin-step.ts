import type { Write } from '../context/write.ts'
import { unlessLogMoved } from '../commit/log-moved.ts'
import type { Message } from '@skein/ai'
import type { DrainContext } from '../context/drain-context.ts'
import type { ResolvedSide } from '../definitions/resolved.ts'
import type { RuntimeEvent } from '../contract/event.ts'
import { afterStored } from '../hooks/hooks.ts'
import { takeQueue } from '../session/take-queue.ts'
import { noteMessage, stepEnd, stepStart } from '../session/turn-events.ts'
import { waitText } from './retry-text.ts'
import { cutOf, type SideTurn, type Step } from '../state/kernel-state.ts'
import { childNote } from '../children/child-list.ts'
import { viewOf } from './view.ts'

/**
 * Takes messages that were queued meanwhile and starts the step. If this process has already started
 * the step, in an earlier commit, the step is not started again.
 */
export async function beginStep(
  context: DrainContext,
  side: ResolvedSide,
): Promise<{ turn: SideTurn; step: Step } | undefined> {
  const { state, epoch } = context
  if (cutOf(state)) return undefined
  const at = context.at()
  const turn = state.session!.turn! // a step is started only within a turn
  // The strategy of an `agent()` asks its model again after its calls, without an `end_step` in
  // between, so its previous step may still be open.
  const isOver = turn.step?.entry !== undefined
  const before = isOver ? undefined : turn.step
  const messages = side.agent ? [] : await takeQueue(context, side)
  const events: RuntimeEvent[] = [...messages, ...registryNote(context, side)]
  if (isOver) events.push(...stepEnd(context))
  if (before?.epoch === epoch) {
    const write: Write = { kind: 'begin', events, requiresUnchangedLog: messages.length > 0 }
    if (
      events.length > 0 &&
      !(await unlessLogMoved(context, () => context.commit('take_queue', write)))
    )
      return undefined
    await afterStored(context, side, messages)
    return { turn, step: before }
  }
  const wasWaiting = before?.retry && waitText(before.retry) === state.statusText
  if (before)
    events.push({ type: 'step_reset', at, turnId: turn.id, stepId: before.id, reason: 'again' })
  // Until now the status said that the thread waits for the vendor; from now on it works again.
  if (wasWaiting) events.push({ type: 'status_changed', at, status: 'running' })
  events.push(stepStart(context, { turnId: turn.id, side: side.side, before }))
  const head = wasWaiting ? ({ lifecycle: 'running' } as const) : undefined
  const write: Write = { kind: 'begin', events, head, requiresUnchangedLog: messages.length > 0 }
  if (!(await unlessLogMoved(context, () => context.commit('step_start', write)))) return undefined
  await afterStored(context, side, messages)
  return { turn: state.session!.turn!, step: state.session!.turn!.step! }
}

/**
 * Returns a note that lists the subagents, if the list has changed since the model last received it, or if the model
 * no longer sees that note: a summary replaces it, or the prompt leaves out earlier sessions.
 */
function registryNote(context: DrainContext, side: ResolvedSide): readonly RuntimeEvent[] {
  const { state } = context
  const last = state.registryText[state.session?.turn?.side ?? 'a']
  const isNote = (message: Message): boolean => message.type === 'user' && message.text === last
  const isSeen = last !== undefined && viewOf(state, side.side, side.prompt).some(isNote)
  const shownText = isSeen ? last : undefined
  const note = childNote(state)
  // If the list is empty and the side of the conversation sees none, no note is needed.
  if (note === undefined && shownText === undefined) return []
  const text = note ?? '[runtime] Subagents of this thread: none.'
  return text === shownText ? [] : [noteMessage(context, text, 'registry')]
}
