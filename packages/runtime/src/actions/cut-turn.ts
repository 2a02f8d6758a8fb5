import type { Write } from '../context/write.ts'
import { unlessLogMoved } from '../commit/log-moved.ts'
import { stepEnd, turnEnd, turnStart } from '../session/turn-events.ts'
import { stopAwaited } from '../children/awaited-children.ts'
import { settledCalls } from '../calls/settled-calls.ts'
import { withdraw } from '../calls/withdraw.ts'
import type { DrainContext } from '../context/drain-context.ts'
import type { RuntimeEvent } from '../contract/event.ts'
import type { Side } from '../contract/thread-state.ts'
import { afterStored } from '../hooks/hooks.ts'
import { endOpenCalls } from '../session/open-calls.ts'
import { takeQueue } from '../session/take-queue.ts'
import { type Entry, openCalls, sideOf } from '../state/kernel-state.ts'
import { waitingAfter } from '../state/questions.ts'
import { listedAs } from '../thread/parent-list.ts'

/**
 * Ends the running turn because a message asked for it (`ifBusy`), and begins the turn in which `side` of the
 * conversation answers the message. Calls that had started have ended by now; calls that have not started do
 * not run, and questions to people about them are withdrawn. The session continues, so a parent that waits for
 * the session still gets an answer, and nothing that was done is undone. With `drops`, models are no longer
 * shown what was said in the session.
 */
export async function cutTurn(context: DrainContext, side: Side, drops: boolean): Promise<void> {
  const { state, agent } = context
  const turn = state.session!.turn! // only a turn can be cut
  const entry = turn.step?.entry === undefined ? undefined : state.entries[turn.step.entry]
  if (entry) await settledCalls(context, sideOf(agent, turn), entry) // answers that no drain has used yet
  const open = openCalls(state)
  for (const call of open) await withdraw(context, call, 'A new message came before the call ran.')
  const why = 'A new message came.'
  const input = 'A new message came before this call was answered. Whether it ran is unknown.'
  const ends = await endOpenCalls(context, {
    why,
    notRun: 'A new message came before this call ran, so it was not run.',
    child: 'A new message came before the subagent answered. It was asked to stop.',
    input: { outcome: 'unknown', result: input },
  })
  const answering = sideOf(agent, { side })
  const messages = await takeQueue(context, answering)
  const at = context.at()
  const events: RuntimeEvent[] = [
    ...ends,
    ...stepEnd(context),
    ...turnEnd(context, 'interrupted', drops ? 'restarted' : 'cut'),
    { type: 'turn_cut', at, turnId: turn.id, ...(drops ? droppedBy(context) : {}) },
    ...(state.status === 'running'
      ? []
      : [{ type: 'status_changed', at, status: 'running' } as const]),
    ...messages,
    ...turnStart(context, side),
  ]
  const waiting = waitingAfter(state, ends, context.environment.clock.now())
  const head = { lifecycle: 'running', waiting } as const
  // The calls that were cut wait for no one any more, so the parent's list must not say that this child waits
  // for a person.
  const listing = state.isToldAwaiting ? listedAs(context, { status: 'running' }) : []
  const others = [...stopAwaited(context), ...listing]
  const write: Write = { kind: 'outcome', events, others, head, requiresUnchangedLog: true }
  if (await unlessLogMoved(context, () => context.commit('turn_cut', write)))
    await afterStored(context, answering, messages)
}

/**
 * Returns which messages of the session models are no longer shown after a message with `ifBusy: 'restart'`.
 * Messages with calls that had started stay, because the model must know what was done; so do messages of
 * children and of the parent.
 */
function droppedBy({ state }: DrainContext): {
  readonly dropped: readonly string[]
  readonly noted?: string
} {
  const entries = state.entries
    .slice(state.session?.firstEntry)
    .filter(({ isRemoved, dropped }) => !isRemoved && !dropped)
  const withoutWork = entries.filter((entry) => !hasWork(entry))
  const question = withoutWork.find(({ message }) => message.type === 'user')
  const dropped = withoutWork.map(({ message }) => message.id)
  const keepsCalls = entries.some(({ calls }) => calls.some(({ mayHaveRun }) => mayHaveRun))
  return question && keepsCalls ? { dropped, noted: question.message.id } : { dropped }
}

function hasWork({ message, calls, subagentId, metadata }: Entry): boolean {
  if (message.type === 'assistant') return calls.some(({ mayHaveRun }) => mayHaveRun)
  return (
    subagentId !== undefined || metadata?.['from'] === 'parent' || metadata?.['kind'] === 'registry'
  )
}
