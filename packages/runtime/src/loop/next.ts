import type { RuntimeLimits } from '../contract/limits.ts'
import type { MessageQueued } from '../contract/event.ts'
import type { Side } from '../contract/thread-state.ts'
import type { ResolvedAgent, ResolvedSide } from '../definitions/resolved.ts'
import type { KernelAction } from '../state/kernel-action.ts'
import {
  cutOf,
  isWaiting,
  openCalls,
  sideOf,
  spentBy,
  startsSomething,
  type KernelState,
  type Session,
} from '../state/kernel-state.ts'
import { openVariables } from '../state/variables.ts'
import { decideStep, endByTool } from '../state/step-decision.ts'
import { callsToRun } from '../state/calls-to-run.ts'

/** The inputs of `next` besides the state of the thread. */
export interface NextOptions {
  /** The agent of the thread; undefined if this process has no definition of that agent. */
  readonly agent: ResolvedAgent | undefined
  /**
   * The number of the drain that calls `next`. A call that was started under
   * another number and still counts as running was left by a process that died.
   */
  readonly epoch: number
  /** The current time, in milliseconds since 1970. */
  readonly now: number
  readonly limits: RuntimeLimits
  /** When this drain looks again whether subagents have stopped, for which a session that fails waits. */
  readonly looksAt?: number | undefined
}

type KnownOptions = NextOptions & { readonly agent: ResolvedAgent }

/** Decides what is done next for a thread; no other code decides that. Pure: it reads no clock and does no I/O. */
export function next(state: KernelState, options: NextOptions): KernelAction {
  const { session } = state
  const { agent, epoch, now, looksAt = now } = options
  if (state.isErased) return { type: 'park', wakeAt: null }
  const write = decidedWrite(state)
  if (write !== undefined) return { type: 'decide_undo', interruptId: write }
  if (state.terminated) {
    const isAwaited = state.queue.some((one) => one.parentInterruptId !== undefined)
    const asksAgain = [...state.interrupts.values()].some(({ isDropped }) => isDropped)
    if (session || isAwaited || asksAgain) return { type: 'close', outcome: 'terminated' }
    // Completed children are terminated too: otherwise a report from one of their own children would
    // begin another session in them.
    const references = [...state.children.values()]
      .filter(({ lifecycle }) => lifecycle !== 'terminated')
      .map(({ created }) => created.reference)
    if (state.terminated.isDetached || references.length === 0)
      return { type: 'park', wakeAt: null }
    return { type: 'cascade', references }
  }
  if (session?.failing)
    return looksAt > now ? { type: 'park', wakeAt: looksAt } : { type: 'end_failing' }
  if (session && state.stop === 'requested') return { type: 'close', outcome: 'stopped' }
  if (!agent)
    return needsAgent(state, options)
      ? { type: 'await_agent' }
      : { type: 'park', wakeAt: nextTime(state, now) }

  const inDoubt = openCalls(state).filter(({ startedEpoch, late }) =>
    startedEpoch === undefined ? late : startedEpoch !== epoch,
  )
  if (inDoubt.length > 0) return { type: 'settle_in_doubt', calls: inDoubt }

  const cutMessage = cutOf(state)
  if (cutMessage) return { type: 'cut_turn', side: sideOfLast(state, agent), ...cutMessage }

  for (const [interruptId, { answer, expiresAt }] of state.interrupts)
    if (!answer && expiresAt !== undefined && Date.parse(expiresAt) <= now)
      return { type: 'expire', interruptId }

  const requestId = providedRequest(state)
  if (requestId !== undefined) return { type: 'boot_child', requestId }

  const effect = nextEffect(state, options)
  if (effect && !effect.mustYield) return effect.action
  // A thread that was stopped before it began waits for its next message, whether its agent is defined or not.
  const isNew = state.immediateFor !== agent.name && state.stop !== 'stopped'
  if (isNew && startsSomething(agent)) return { type: 'activate' }
  const facts = { ...options, agent }
  const action = session ? inSession(state, session, facts) : outOfSession(state, facts)
  return action.type === 'park' && effect ? effect.action : action
}

/**
 * Returns the action for the first effect that is due, was cut off by a crash, or got its answer.
 * `mustYield` is true if this effect, or another one since the last session, failed or crashed: messages are then
 * answered first. Otherwise an effect that fails or kills the process again and again would block them for ever.
 */
function nextEffect(
  { effects, interrupts, effectsYield }: KernelState,
  { epoch, now }: Pick<NextOptions, 'epoch' | 'now'>,
): { readonly action: KernelAction; readonly mustYield: boolean } | undefined {
  const byTime = [...effects.entries()].sort(
    ([, a], [, b]) => Date.parse(a.runAt) - Date.parse(b.runAt),
  )
  for (const [effectId, { runAt, runningEpoch, interruptId, attempts, late }] of byTime) {
    const isCutOff = runningEpoch !== undefined || late !== undefined
    // This same run of the work was interrupted while it ran the effect, so only the next run
    // of the work decides what became of the effect.
    if (runningEpoch === epoch) continue
    const open = interruptId === undefined ? undefined : interrupts.get(interruptId)
    if (open && !open.answer) continue
    if (!isCutOff && Date.parse(runAt) > now) continue
    const type = isCutOff || open?.interrupt.kind === 'in_doubt' ? 'settle_effect' : 'run_effect'
    const mustYield = effectsYield || type === 'settle_effect' || attempts > 0
    return { action: { type, effectId }, mustYield }
  }
  return undefined
}

/** Returns the id of a question about a write whose session has failed, if a person has answered it. */
function decidedWrite({ interrupts }: KernelState): string | undefined {
  for (const [interruptId, { write, answer }] of interrupts) if (write && answer) return interruptId
  return undefined
}

/** Returns the id of a request for variables that a person has answered and whose child was not created yet. */
function providedRequest({ variables }: KernelState): string | undefined {
  for (const [requestId, { provided, reference, error }] of variables)
    if (provided && reference === undefined && error === undefined) return requestId
  return undefined
}

/** Whether a thread has work that cannot be done without the definition of its agent. */
export function needsAgent(
  state: KernelState,
  { epoch, now }: Pick<NextOptions, 'epoch' | 'now'>,
): boolean {
  const { session, lastSession, immediateFor, stop } = state
  if (session || startsSession(state) || providedRequest(state) !== undefined) return true
  const wakeAt = nextTime(state, now)
  if (wakeAt !== null && wakeAt <= now) return true
  // An effect that waited for a person's answer and got it is due immediately; `wakeAt` does not say so.
  if (nextEffect(state, { epoch, now })) return true
  // A new thread needs its agent, because the agent may have hooks or children that start with the thread.
  return lastSession === undefined && immediateFor === undefined && stop === 'none'
}

function outOfSession(state: KernelState, { agent, now }: KnownOptions): KernelAction {
  const { queue, resume } = state
  const parking = { type: 'park', wakeAt: nextTime(state, now) } as const
  const answering = sideOfLast(state, agent)
  if (waitsForImmediate(state) || !startsSession(state)) return parking
  if (resume) {
    // The session begins with the side of the conversation that `resume` names, else with the side that answers the
    // last queued message, else with the side whose turn it is.
    const side = resume.side ?? (queue.length > 0 ? answering : state.nextSide)
    return { type: 'begin_session', side: agent.b ? side : 'a' }
  }
  return { type: 'begin_session', side: answering }
}

/** Returns the side of the conversation that answers all queued messages together: the last one's role decides. */
function sideOfLast({ queue }: KernelState, agent: ResolvedAgent): Side {
  return queue.at(-1)?.role === 'assistant' && agent.b ? 'b' : 'a'
}

/** Whether a queued message or a request to resume starts a session. */
function startsSession({ queue, queuedIds, stop, stopSeq, resume }: KernelState): boolean {
  // After the stop button, only a message that a person sent later starts a session again. Messages
  // that were queued before the stop, and reports of children, stay queued.
  const isAfterStop = ({ resumes, queueId }: MessageQueued): boolean =>
    resumes === true && (queuedIds.get(queueId) ?? 0) > stopSeq
  if (resume) return true
  return stop === 'stopped' ? queue.some(isAfterStop) : queue.length > 0
}

function inSession(state: KernelState, session: Session, options: KnownOptions): KernelAction {
  const { agent, limits, now } = options
  const { turn } = session
  if (!turn) return { type: 'begin_session', side: 'a' }
  const side = sideOf(agent, turn)
  if (side.agent) return inAgentTurn(state, session, { ...options, side })
  const { entry: place, retry } = turn.step ?? {}
  if (place !== undefined) {
    const entry = state.entries[place]!
    const open = openCalls(state)
    if (callsToRun(state, side, entry).length > 0) return { type: 'run_calls', side, entry }
    if (open.length > 0) return { type: 'park', wakeAt: nextTime(state, now) }
    const decision = decideStep({ state, session, agent, side, entry, limits })
    return { type: 'end_step', side, decision }
  }
  if (waitsForImmediate(state)) return { type: 'park', wakeAt: nextTime(state, now) }
  if (retry && Date.parse(retry.at) > now) {
    const wakeAt = Math.min(nextTime(state, now) ?? Infinity, Date.parse(retry.at))
    return { type: 'park', wakeAt, retry }
  }
  const steps = spentBy(session)[side.side]
  const max = Number.isFinite(side.maxSteps) ? side.maxSteps : limits.maxSteps
  if (steps < max) return { type: 'infer', side }
  const message = `${side.label} took ${steps} steps in this session, as many as it may.`
  const end = { outcome: 'failed', reason: 'max_side_steps', message, attachments: [] } as const
  return { type: 'end_step', side, decision: { type: 'end_session', ...end } }
}

/**
 * Decides the next action within the turn of an `agent()` on one side of the conversation. Its strategy decides
 * by itself what to ask and to call, so this function only checks for reasons not to run the strategy now.
 */
function inAgentTurn(
  state: KernelState,
  session: Session,
  { agent, side, limits, now }: KnownOptions & { readonly side: ResolvedSide },
): KernelAction {
  const { entry: place, retry } = session.turn?.step ?? {}
  const open = openCalls(state)
  // The strategy may start another call only after a waiting call has its result. So the strategy is
  // run again only when a waiting call has got its answer and can be run or settled.
  if (place !== undefined && open.some((call) => isWaiting(state, call))) {
    const ready = callsToRun(state, side, state.entries[place]!)
    if (!ready.some(({ interruptId }) => interruptId !== undefined))
      return { type: 'park', wakeAt: nextTime(state, now) }
  }
  if (place !== undefined && open.length === 0) {
    const entry = state.entries[place]!
    const isStopped = state.stop === 'after_step'
    const decision = endByTool({ state, session, agent, side, entry, limits })
    if (decision ?? isStopped)
      return { type: 'end_step', side, decision: decision ?? { type: 'continue' } }
  }
  if (retry && Date.parse(retry.at) > now) {
    const wakeAt = Math.min(nextTime(state, now) ?? Infinity, Date.parse(retry.at))
    return { type: 'park', wakeAt, retry }
  }
  return { type: 'run_agent', side }
}

/**
 * Whether a child that the thread waits for, and that was started together with the thread, is still
 * working. The first step waits for such a child.
 */
function waitsForImmediate({ children }: KernelState): boolean {
  return [...children.values()].some(
    ({ created, lifecycle }) =>
      created.isImmediate &&
      created.isBlocking &&
      (lifecycle === 'running' || lifecycle === 'awaiting_human'),
  )
}

/**
 * Returns the earliest time when an effect is due, or when a question to a person or a request
 * for variables expires; null if there is no such time.
 */
function nextTime(state: KernelState, now: number): number | null {
  const { effects, interrupts } = state
  let first = Infinity
  for (const { runAt, interruptId } of effects.values())
    if (interruptId === undefined) first = Math.min(first, Date.parse(runAt))
  for (const { answer, expiresAt } of interrupts.values())
    if (!answer && expiresAt !== undefined) first = Math.min(first, Date.parse(expiresAt))
  // A request for variables that expires needs no action, but from then on the thread no longer counts as waiting.
  for (const { requested } of openVariables(state, now))
    first = Math.min(first, Date.parse(requested.expiresAt))
  return first === Infinity ? null : first
}
