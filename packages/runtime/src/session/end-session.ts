import { unlessLogMoved } from '../commit/log-moved.ts'
import { asTold } from '../children/tell-parent.ts'
import type { JsonValue } from '@skein/base'
import type { Reason } from '@skein/governance'
import { stopAwaited } from '../children/awaited-children.ts'
import { reportToParent } from '../children/report.ts'
import { stopBelow } from '../children/running-below.ts'
import type { DrainContext } from '../context/drain-context.ts'
import type { Write } from '../context/write.ts'
import type { FailureCause, RuntimeEvent, SessionOutcome } from '../contract/event.ts'
import { checksAnswers } from '../definitions/resolved.ts'
import { questionsAbout, undoneEvents, textOfWrites } from './failed-writes.ts'
import type { FailedSession } from '../governance/session-governor.ts'
import { settleLateCalls } from './late.ts'
import { endOpenCalls } from './open-calls.ts'
import { judged, stepEnd, turnEnd } from './turn-events.ts'
import { callIdOf } from '../state/calls.ts'
import type { KernelState } from '../state/kernel-state.ts'
import { openForPeople } from '../state/questions.ts'
import { openVariables } from '../state/variables.ts'
import { isStoreError } from '../store/store-error.ts'

/** How a session ends. */
export interface SessionEnding {
  readonly outcome: SessionOutcome
  readonly reason: string
  readonly message: string
  /** What to do about a failure. */
  readonly hint?: string
  readonly attachments?: readonly string[]
  readonly data?: JsonValue
  /** The final message of the side of the conversation whose turn it is; it is added in the same commit. */
  readonly spoken?: readonly RuntimeEvent[]
  /** Whether the turn was completed, even if the session failed. */
  readonly isTurnOver?: boolean
  /** Why the runtime gives the thread up; set only if it does. */
  readonly cause?: FailureCause
}

/** Ends the session and reports to the parent, in one commit. */
export async function endSession(context: DrainContext, ending: SessionEnding): Promise<void> {
  const { state } = context
  const { session } = state
  if (!session) return
  if (await waitsForStops(context, ending)) return
  const { outcome, reason, hint, attachments = [], data, spoken = [] } = ending
  // Each open call gets a result that says why it did not finish, because vendors refuse a history with calls
  // that have no result.
  const ends = await endOpenCalls(context, { why: whyEnded(outcome) })
  const failure =
    outcome !== 'completed' && (session.isGoverned || reachesChildren(context))
      ? await failGoverned(context, ending)
      : undefined
  const { message, undone, questions } = await consequencesOf(context, ending, failure)
  const outcomes = ends.filter(({ type }) => type !== 'interrupt_opened')
  const openQuestions = [...withoutAsked(context, ends, questions), ...questions]
  const isCut = outcome === 'stopped' || outcome === 'terminated'
  const reports = await reportToParent(context, { ...ending, message, attachments })
  const { blobs } = reports
  const isUndelivered = state.parent !== undefined && reports.changes.length === 0 && !isCut
  // A child that is not resumable ends with its result (Standard Agents §7.3): it takes no more
  // messages and reports only once. `next` then terminates the child's own children.
  const isOver = isDisposable(state) && outcome !== 'terminated'
  const turnOutcome =
    outcome === 'completed' || ending.isTurnOver ? 'completed' : isCut ? 'interrupted' : 'failed'
  const eventsIf = (isUndelivered: boolean): RuntimeEvent[] => [
    ...outcomes,
    ...undone.own,
    ...spoken,
    ...(outcome === 'completed'
      ? judged(context, 'delivered', { spoken })
      : judged(context, 'refused', { spoken, reason: message })),
    ...stepEnd(context),
    ...turnEnd(context, turnOutcome, reason),
    {
      type: 'session_end',
      at: context.at(),
      sessionId: session.id,
      outcome,
      reason,
      message: isCut && message === '' ? undefined : message,
      hint,
      attachments: attachments.length > 0 ? attachments : undefined,
      data,
      isUndelivered: isUndelivered || undefined,
      cause: ending.cause,
    },
    ...(isOver ? [reportedEnd(context)] : []),
    ...openQuestions,
  ]
  const others = [
    ...reports.changes,
    ...undone.others,
    ...(outcome === 'stopped' ? stopAwaited(context) : []),
  ]
  const lifecycle = isOver ? 'terminated' : outcome === 'completed' ? 'idle' : outcome
  // The session's calls no longer wait. What people are asked about calls with an unknown outcome and about writes
  // stays, and
  // so do the questions of effects and requests for variables, unless the thread is over.
  const isLast = isOver || state.terminated !== undefined
  const stays = openForPeople(state).filter(({ isDetached, effectId }) =>
    isOver ? false : isDetached || (!isLast && effectId !== undefined),
  )
  const variables = openVariables(state, context.environment.clock.now())
  const waiting = openQuestions.length + stays.length + (isLast ? 0 : variables.length)
  const head = { waiting, lifecycle } as const
  const events = eventsIf(isUndelivered)
  const undeliveredEvents = eventsIf(!isCut)
  const write: Write = {
    kind: 'outcome',
    events,
    undelivered: undeliveredEvents,
    others,
    blobs,
    head,
  }
  // Usually the work on the thread ends next, and one commit then writes the end of the session and of the work.
  await context.commit('session_end', { ...write, joinsNext: true })
  context.dropGovernor()
}

function whyEnded(outcome: SessionOutcome): string {
  if (outcome === 'stopped') return 'The user stopped the run.'
  if (outcome === 'terminated') return 'The thread was terminated.'
  return `The session ended (${outcome}).`
}

/**
 * Returns the questions about calls that have ended, except those about writes of the failed session, because the question
 * about such a write also decides whether it is undone.
 */
function withoutAsked(
  { state }: DrainContext,
  ended: readonly RuntimeEvent[],
  questions: readonly RuntimeEvent[],
): readonly RuntimeEvent[] {
  const writes = new Set(
    questions.flatMap((event) => ('write' in event && event.write ? event.write.call : [])),
  )
  return ended.filter(
    (event) =>
      event.type === 'interrupt_opened' && !writes.has(callIdOf(state, event.interrupt.toolCallId)),
  )
}

/**
 * Whether the failing session has promised that the writes of its subagents are undone with its own. Without a task
 * class, a session leaves alone the subagents that it does not wait for (Standard Agents §7).
 */
function reachesChildren({ state, environment }: DrainContext): boolean {
  const agent = environment.registry.agents.get(state.agent)
  return agent !== undefined && checksAnswers(agent) && state.children.size > 0
}

/**
 * If subagents still work for a session that fails, asks them to stop and returns true: the session ends when they have
 * (`endFailing`), because their writes and its own are undone in the reverse order in which they happened. A session that
 * has to end now, e.g. because it cannot continue, does not wait.
 */
async function waitsForStops(context: DrainContext, ending: SessionEnding): Promise<boolean> {
  const { state } = context
  const { session } = state
  const { outcome, reason, message, hint, attachments, data, spoken = [], cause } = ending
  if (!session || session.failing || session.leavesWrites || !reachesChildren(context)) return false
  if (outcome === 'completed' || outcome === 'terminated') return false
  if (cause !== undefined || reason === 'no_progress') return false
  for (let tries = 0; tries < MOST_STOP_TRIES; tries++) {
    const { running: below, changes: others } = await stopBelow(context)
    if (others.length === 0) return false
    const at = context.at()
    const failing = { outcome, reason, message, hint, attachments, data, below }
    const events: RuntimeEvent[] = [
      ...spoken,
      { type: 'session_failing', at, sessionId: session.id, ...failing },
      { type: 'status_changed', at, status: 'stopping', ...asTold(state) },
    ]
    const head = { lifecycle: 'stopping' } as const
    // The commit must not be made again with the same changes: a subagent may have taken the message meanwhile.
    const write: Write = { kind: 'outcome', events, others, head, requiresUnchangedLog: true }
    if (await unlessLogMoved(context, () => context.commit('session_failing', write))) return true
  }
  return false
}

/** How often the subagents of a session that fails are read again because one of them has just taken a message. */
const MOST_STOP_TRIES = 5

/** Returns the text of a session that was not delivered. */
export function notDelivered(reasons: readonly Reason[]): string {
  const text = reasons
    .map(({ code, detail }) => (detail === undefined ? code : `${code} (${detail})`))
    .join(', ')
  return `The result was not delivered: ${text}.`
}

/** What follows from the writes of a session that failed, besides its end. */
interface Consequences {
  readonly message: string
  readonly undone: Awaited<ReturnType<typeof undoneEvents>>
  /** The questions to people about writes that were not undone. */
  readonly questions: readonly RuntimeEvent[]
}

/**
 * Returns the result of a session that failed, which says what became of each write, and what the logs and the inbox
 * get. Only agents with a task class promise that their writes are undone or named.
 */
async function consequencesOf(
  context: DrainContext,
  { message, reason }: SessionEnding,
  failed: FailedSession | undefined,
): Promise<Consequences> {
  const { writes = [], reasons = [] } = failed ?? {}
  const undone = await undoneEvents(
    context,
    writes.filter(({ isOwn }) => isOwn),
  )
  const { agent: name } = context.state
  const agent = context.environment.registry.agents.get(name)
  if (!failed || !agent || !checksAnswers(agent)) return { message, undone, questions: [] }
  const why = reason === 'fail_safe' ? notDelivered(reasons) : message
  const text = textOfWrites(name, writes)
  return {
    message: [why, text].filter((one) => one !== '').join('\n\n'),
    undone,
    questions: questionsAbout(context, writes),
  }
}

/** Whether the thread is a child that ends with its first result, because it is not resumable. */
export function isDisposable({ parent }: KernelState): boolean {
  return parent !== undefined && !parent.isResumable
}

/** Returns the event that ends a child after its report. */
export function reportedEnd(context: DrainContext): RuntimeEvent {
  return { type: 'thread_terminated', at: context.at(), hasReported: true }
}

/**
 * Tells the governor that its session failed. A session that is given up has to end
 * even if the governor cannot be opened, e.g. without its agent; the audit log then shows the request as open.
 */
async function failGoverned(
  context: DrainContext,
  { reason, message, cause }: SessionEnding,
): Promise<FailedSession | undefined> {
  const { state, environment } = context
  const { leavesWrites } = state.session ?? {}
  try {
    await settleLateCalls(context)
    return await (await context.governor()).fail(reason, message, { leavesWrites })
  } catch (error) {
    const mayFail = cause !== undefined || !environment.registry.agents.has(state.agent)
    if (!mayFail || isStoreError(error)) throw error
    context.dropGovernor()
    return undefined
  }
}
