import type { DrainContext, Write } from '../contract/context.ts'
import type { ResolvedSide } from '../definitions/resolved.ts'
import type { RuntimeEvent, RuntimeMessageAdded, SessionOutcome } from '../contract/event.ts'
import { afterStored, beforeCreate } from '../hooks/hooks.ts'
import { isWaiting, openCalls, openForPeople, sideOf, type Step } from '../contract/state.ts'
import type { Side } from '../contract/thread-state.ts'
import type { JsonValue } from '@skein/base'
import { reportToParent } from '../children/report.ts'
import type { KernelAction } from '../next.ts'
import { isStoreError, type ThreadChange, type ThreadLifecycle } from '../store/store.ts'

/** Starts a session with the queued messages. `side` is the side that answers. */
export async function beginSession(context: DrainContext, side: Side): Promise<void> {
  const { environment, agent, state } = context
  const at = context.at()
  const events: RuntimeEvent[] = []
  if (!state.session)
    events.push({ type: 'session_start', at, sessionId: environment.ids(), agent: agent.name })
  if (state.status !== 'running') events.push({ type: 'status_changed', at, status: 'running' })
  const answering = sideOf(agent, { side })
  const taken = await takeQueue(context, answering)
  events.push(...taken, ...turnStart(context, side))
  const head = { lifecycle: 'running', agent: agent.name } as const
  await context.commit('session_start', { events, head })
  await afterStored(context, answering, taken)
}

/**
 * Returns the events that move every queued message into the history, in order. The hooks of `side`, the side
 * that will answer, process the messages. Messages that these hooks queue stay queued until the next step.
 */
export async function takeQueue(
  context: DrainContext,
  side: ResolvedSide,
): Promise<RuntimeMessageAdded[]> {
  const taken: RuntimeMessageAdded[] = []
  const waiting = [...context.state.queue]
  for (const queued of waiting) {
    const { queueId, role, message, attachments, subagentId, metadata, userId } = queued
    const added: RuntimeMessageAdded = {
      type: 'message_added',
      at: context.at(),
      turnId: queueId,
      message,
      side: role === 'user' ? 'b' : 'a',
      queueId,
      isSilent: queued.isSilent || undefined,
      attachments,
      subagentId,
      metadata,
      userId,
    }
    taken.push(await beforeCreate(context, side, added))
  }
  return taken
}

/** Returns a silent message of the runtime for the side whose turn it is. */
export function noteMessage(context: DrainContext, text: string, kind: string): RuntimeEvent {
  const { environment, state } = context
  const at = context.at()
  const id = environment.ids()
  const speaking = state.session?.turn?.side ?? 'a'
  return {
    type: 'message_added',
    at,
    turnId: id,
    message: { id, type: 'user', timestamp: at, content: [{ type: 'text', text }] },
    side: speaking === 'a' ? 'b' : 'a',
    isSilent: true,
    metadata: { kind, for: speaking },
  }
}

/** Returns the events that start a turn and its first step. */
export function turnStart(context: DrainContext, side: Side): RuntimeEvent[] {
  const agentId = `${context.agent.name}/${side}`
  const turnId = context.environment.ids()
  const at = context.at()
  return [{ type: 'turn_start', at, turnId, agentId, side }, stepStart(context, { turnId, side })]
}

/**
 * Returns the event that starts a step. When a step is tried again, `before` is the earlier attempt, and the
 * step keeps its id.
 */
export function stepStart(
  context: DrainContext,
  step: { readonly turnId: string; readonly side: Side; readonly before?: Step | undefined },
): RuntimeEvent {
  const { turnId, side, before } = step
  return {
    type: 'step_start',
    at: context.at(),
    turnId,
    stepId: before?.id ?? context.environment.ids(),
    side,
    attempt: (before?.attempt ?? 0) + 1,
    epoch: context.epoch,
  }
}

/** Returns the event that ends the running step; none if no step is running. */
export function stepEnd(context: DrainContext): RuntimeEvent[] {
  const turn = context.state.session?.turn
  if (!turn?.step) return []
  return [{ type: 'step_end', at: context.at(), turnId: turn.id, stepId: turn.step.id }]
}

/** Returns the event that ends the running turn; none if no turn is running. */
export function turnEnd(
  context: DrainContext,
  outcome: 'completed' | 'interrupted' | 'failed',
  reason: string,
): RuntimeEvent[] {
  const turn = context.state.session?.turn
  if (!turn) return []
  return [{ type: 'turn_end', at: context.at(), turnId: turn.id, outcome, reason }]
}

/** How a session ends. */
export interface SessionEnding {
  readonly outcome: SessionOutcome
  readonly reason: string
  readonly message: string
  readonly attachments?: readonly string[]
  readonly data?: JsonValue
  /** A last message of the side, which is added in the same commit. */
  readonly spoken?: readonly RuntimeEvent[]
  /** Whether the turn was completed, even if the session failed. */
  readonly isTurnOver?: boolean
}

/** Ends the session and reports to the parent, in one commit. */
export async function endSession(context: DrainContext, ending: SessionEnding): Promise<void> {
  const { state } = context
  const { session } = state
  if (!session) return
  const { outcome, reason, message, attachments = [], data, spoken = [] } = ending
  if (outcome !== 'completed' && session.isGoverned)
    await (await context.governor()).fail(reason, message)
  const isCut = outcome === 'stopped' || outcome === 'terminated'
  const reports = await reportToParent(context, { ...ending, attachments })
  const isUndelivered = state.parent !== undefined && reports.length === 0 && !isCut
  const turnOutcome =
    outcome === 'completed' || ending.isTurnOver ? 'completed' : isCut ? 'interrupted' : 'failed'
  // Each open call gets a result that says why it did not finish, because vendors refuse a history with calls
  // that have no result.
  const why =
    outcome === 'stopped' ? 'The user stopped the run.' : `The session ended (${outcome}).`
  const cut = openCalls(state).map(({ call: { toolCallId, toolName } }) => ({
    type: 'tool_execution_end' as const,
    at: context.at(),
    turnId: session.turn?.id ?? '',
    toolCallId,
    toolName,
    outcome: 'interrupted' as const,
    result: `${why} This call has no result.`,
  }))
  const events: RuntimeEvent[] = [
    ...cut,
    ...spoken,
    ...stepEnd(context),
    ...turnEnd(context, turnOutcome, reason),
    {
      type: 'session_end',
      at: context.at(),
      sessionId: session.id,
      outcome,
      reason,
      message: isCut && message === '' ? undefined : message,
      attachments: attachments.length > 0 ? attachments : undefined,
      data,
      isUndelivered: isUndelivered || undefined,
    },
  ]
  const others = [...reports, ...(outcome === 'stopped' ? stopAwaited(context) : [])]
  const lifecycle = outcome === 'completed' ? ('idle' as const) : outcome
  const head = { waiting: 0, lifecycle }
  await context.commit('session_end', { events, others, isProgress: true, head })
  context.dropGovernor()
}

/**
 * Returns the changes that stop the running children for which a call of this thread waits, because nobody
 * will read their results.
 */
function stopAwaited(context: DrainContext): ThreadChange[] {
  const { state, environment } = context
  const at = context.at()
  return [...state.interrupts.values()].flatMap(({ interrupt: { kind, request }, answer }) => {
    if (kind !== 'child' || answer) return []
    const reference = (request as { readonly reference?: unknown } | null)?.reference
    const lifecycle = state.children.get(String(reference))?.lifecycle
    if (lifecycle !== 'running' && lifecycle !== 'awaiting_human') return []
    const append = [{ type: 'stop_requested', at } as const]
    return [{ id: String(reference), append, wake: { by: environment.clock.now() } }]
  })
}

/** Ends the session because of the stop button or because the thread was terminated. */
export async function close(
  context: DrainContext,
  outcome: 'stopped' | 'terminated',
): Promise<void> {
  const message = outcome === 'stopped' ? '' : 'The thread was terminated.'
  return endSession(context, { outcome, reason: outcome, message })
}

/** Answers an expired interrupt with an error. The model gets it as the result of the call. */
export async function expire(context: DrainContext, interruptId: string): Promise<void> {
  const answer = { type: 'error', message: 'Nobody answered in time.' } as const
  const events = [{ type: 'interrupt_answered' as const, at: context.at(), interruptId, answer }]
  await context.commit('expire', { events, isProgress: true })
}

/**
 * Terminates the children of a terminated thread; each child then terminates its own children. A terminated
 * thread creates no children, so the list is complete.
 */
export async function cascade(context: DrainContext, references: readonly string[]): Promise<void> {
  const at = context.at()
  const wake = { by: context.environment.clock.now() }
  const others: ThreadChange[] = []
  for (const id of references) {
    const head = await context.environment.store.head(id)
    if (!head || head.lifecycle === 'terminated' || head.lifecycle === 'erased') continue
    const append: RuntimeEvent[] = [{ type: 'thread_terminated', at }]
    others.push({ id, append, raisesEpoch: true, head: { lifecycle: 'terminated' }, wake })
  }
  const events = references.map(
    (reference) => ({ type: 'subagent_ended', at, reference, outcome: 'terminated' }) as const,
  )
  await context.commit('cascade', { events, others, isProgress: true })
}

/**
 * A thread that has to wait longer than `LONG_WAIT_MS` for the model's vendor has the status `waiting`
 * instead of `running`.
 */
const LONG_WAIT_MS = 60_000

/**
 * Commits that the thread is parked until `wakeAt`, and returns true; the drain then ends. Returns false when
 * another writer has appended to the log meanwhile; the drain then continues.
 */
export async function park(
  context: DrainContext,
  { wakeAt, retry }: Extract<KernelAction, { type: 'park' }>,
): Promise<boolean> {
  const { state } = context
  const isLong = retry && Date.parse(retry.at) - context.environment.clock.now() > LONG_WAIT_MS
  const { session, stop, lastSession } = state
  const waitsForAnswer = openCalls(state).some((call) => isWaiting(state, call))
  let lifecycle: Exclude<ThreadLifecycle, 'erased'> =
    stop === 'stopped' ? 'stopped' : lastSession?.outcome === 'failed' ? 'failed' : 'idle'
  if (session) lifecycle = isLong || waitsForAnswer ? 'waiting' : 'running'
  if (state.terminated) lifecycle = 'terminated'
  const text = retry && waitText(retry)
  const isNew = lifecycle !== state.status || (retry && text !== state.statusText)
  const waiting = openForPeople(state).length
  const { tokens, costUsd } = state.usage
  try {
    await context.commit('park', {
      events: isNew ? [{ type: 'status_changed', at: context.at(), status: lifecycle, text }] : [],
      head: { lifecycle, waiting, tokens, costUsd },
      wake: { exactly: wakeAt },
      expectsNoMail: true,
      isProgress: true,
    })
    return true
  } catch (error) {
    if (!isStoreError(error, 'LOG_MOVED')) throw error
    await context.catchUp()
    return false
  }
}

/** Returns the status text of a thread that waits to ask its model again. */
export function waitText({ at, reason }: NonNullable<Step['retry']>): string {
  return `Waits until ${at} to ask the model again: ${reason}`
}

/** Parks a thread whose last drains all ended without progress, and writes the reason to its log. */
export async function failStuck(context: DrainContext): Promise<void> {
  const { attempts } = context.head
  const message = `The thread is parked: ${attempts} attempts to continue it ended without progress.`
  const error = {
    type: 'error_raised',
    at: context.at(),
    code: 'DRAIN_FAILED',
    message,
    hint: 'The errors of these attempts were given to onError. Fix their cause, then resume the thread.',
  } as const
  const ending = { outcome: 'failed', reason: 'drain_failed', message } as const
  const hadSession = context.state.session !== undefined
  if (hadSession) await endSession(context, ending)
  // If the thread had no session to end, a call of the parent may still wait for it and needs an answer.
  const others = hadSession ? [] : await reportToParent(context, { ...ending, attachments: [] })
  const write: Write = { events: [error], others, head: { lifecycle: 'failed' } }
  for (;;) {
    // A request to resume may arrive at this moment; parking must not overwrite its wake-up.
    const wake = context.state.resume ? { by: context.environment.clock.now() } : { exactly: null }
    try {
      await context.commit('fail_stuck', { ...write, wake, expectsNoMail: true, isProgress: true })
      return
    } catch (error) {
      if (!isStoreError(error, 'LOG_MOVED')) throw error
      await context.catchUp()
    }
  }
}
