import type { DrainContext } from '../contract/context.ts'
import type { RuntimeEvent } from '../contract/event.ts'
import {
  type CallState,
  type Entry,
  openCalls,
  sideOf,
  waitingAfter,
} from '../state/kernel-state.ts'
import type { Side } from '../contract/thread-state.ts'
import { argumentsToRun, callIdOf } from '../state/calls.ts'
import { settleUnknownEffect as settle } from '../governance/in-doubt.ts'
import { afterStored } from '../hooks/hooks.ts'
import {
  commitTaken,
  stepEnd,
  stopAwaited,
  takeQueue,
  turnEnd,
  turnStart,
} from '../session/session.ts'
import { endLate } from '../session/late.ts'
import { endOpenCalls, goneTool } from '../session/open-calls.ts'
import { listedAs } from '../thread/changes.ts'
import { answerToApproval, withdrawReview } from '../calls/gate.ts'
import { settledCalls } from '../calls/run.ts'

/**
 * Ends the running turn because a message asked for it (`ifBusy`), and begins the turn in which `side` of the
 * conversation answers the message. Calls that had started have ended by now; calls that have not started do
 * not run, and questions to people about them are withdrawn. The session goes on, so a parent that waits for
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
  const ended = await endOpenCalls(context, {
    why,
    notRun: 'A new message came before this call ran, so it was not run.',
    child: 'A new message came before the subagent answered. It was asked to stop.',
    input: { outcome: 'unknown', result: input },
  })
  const answering = sideOf(agent, { side })
  const taken = await takeQueue(context, answering)
  const at = context.at()
  const events: RuntimeEvent[] = [
    ...ended,
    ...stepEnd(context),
    ...turnEnd(context, 'interrupted', drops ? 'restarted' : 'cut'),
    { type: 'turn_cut', at, turnId: turn.id, ...(drops ? droppedBy(context) : {}) },
    ...(state.status === 'running'
      ? []
      : [{ type: 'status_changed', at, status: 'running' } as const]),
    ...taken,
    ...turnStart(context, side),
  ]
  const waiting = waitingAfter(state, ended, context.environment.clock.now())
  const head = { lifecycle: 'running', waiting } as const
  // The calls that were cut wait for nobody any more, so the parent's list must not say that this child waits
  // for a person.
  const listed = state.isToldAwaiting ? listedAs(context, { status: 'running' }) : []
  const others = [...stopAwaited(context), ...listed]
  const write = { events, others, head, isProgress: true, expectsNoMail: true }
  if (await commitTaken(context, 'turn_cut', write)) await afterStored(context, answering, taken)
}

/**
 * Tells the governor, which judges calls, that the question about this call is withdrawn, so that a later
 * approval of it cannot be used.
 */
async function withdraw(
  context: DrainContext,
  { call, interruptId }: CallState,
  reason: string,
): Promise<void> {
  const asked = context.state.interrupts.get(interruptId ?? '')
  if (asked?.interrupt.kind !== 'approval') return
  const answer = answerToApproval(asked)
  const withdrawn = { type: 'deny', reason, by: { type: 'system', id: 'runtime' } } as const
  await withdrawReview(context, call, answer?.type === 'deny' ? answer : withdrawn)
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
  const said = state.entries
    .slice(state.session?.firstEntry)
    .filter(({ isRemoved, dropped }) => !isRemoved && !dropped)
  const gone = said.filter((entry) => !hasWork(entry))
  const asked = gone.find(({ message }) => message.type === 'user')
  const dropped = gone.map(({ message }) => message.id)
  const keepsCalls = said.some(({ calls }) => calls.some(({ mayHaveRun }) => mayHaveRun))
  return asked && keepsCalls ? { dropped, noted: asked.message.id } : { dropped }
}

function hasWork({ message, calls, subagentId, metadata }: Entry): boolean {
  if (message.type === 'assistant') return calls.some(({ mayHaveRun }) => mayHaveRun)
  return (
    subagentId !== undefined || metadata?.['from'] === 'parent' || metadata?.['kind'] === 'registry'
  )
}

/**
 * Settles calls that were running when a process died: uses a result that came late, checks whether the effect
 * happened, runs the call again, asks a person, or tells the model that the outcome is unknown.
 */
export async function settleInDoubt(
  context: DrainContext,
  calls: readonly CallState[],
): Promise<void> {
  for (const call of calls) {
    const event = await settled(context, call)
    // Running a call again does not count as progress. Otherwise a call that crashes every process would be
    // repeated for ever.
    await context.commit('in_doubt', { events: [event], isProgress: event.type !== 'call_reset' })
  }
}

async function settled(context: DrainContext, one: CallState): Promise<RuntimeEvent> {
  if (one.late) {
    await withdraw(context, one, 'The call has ended after all.')
    return endLate(context, one, await context.governor())
  }
  const { call } = one
  const { state, agent, head, signal, environment } = context
  const turn = state.session!.turn! // calls in doubt belong to the running turn
  const { toolCallId, toolName } = call
  const base = { at: context.at(), turnId: turn.id, toolCallId }
  const side = sideOf(agent, turn)
  const found = side.prompt.tools.find(({ name }) => name === toolName)
  // The runtime's own tools only change the thread in the commit of their outcome, which did not happen, so
  // they can run again.
  const isGone = !found && !context.tools(side).some(({ name }) => name === toolName)
  const tool = isGone ? goneTool(toolName) : found?.kind === 'tool' ? found.tool : undefined
  if (!tool || (!isGone && !tool.run)) return { type: 'call_reset', ...base }
  const callId = callIdOf(state, toolCallId)
  const result = await settle({
    tool,
    callId,
    args: argumentsToRun(one),
    governor: await context.governor(),
    context: { signal, idempotencyKey: `${head.id}/${callId}` },
  })
  if (result.type === 'rerun') return { type: 'call_reset', ...base }
  if (result.type === 'ask') {
    const { at, turnId } = base
    const { request } = result
    const interrupt = { id: environment.ids(), toolCallId, kind: 'in_doubt', request } as const
    return { type: 'interrupt_opened', at, turnId, interrupt }
  }
  const end = { type: 'tool_execution_end', ...base, toolName, result: result.message } as const
  return result.type === 'done'
    ? { ...end, outcome: 'success', settledBy: 'probe' }
    : { ...end, outcome: 'unknown' }
}
