import type { DrainContext, KernelEnvironment, Write } from '../contract/context.ts'
import { checksAnswers, type ResolvedSide } from '../definitions/resolved.ts'
import type {
  FailureCause,
  RuntimeEvent,
  RuntimeMessageAdded,
  SessionOutcome,
} from '../contract/event.ts'
import { afterStored, beforeCreate } from '../hooks/hooks.ts'
import { listedAs } from '../thread/changes.ts'
import {
  isAwaited,
  isWaiting,
  type KernelState,
  openCalls,
  openForPeople,
  openVariables,
  sideOf,
  type Step,
  waitingCount,
} from '../state/kernel-state.ts'
import type { Side } from '../contract/thread-state.ts'
import type { Reason } from '@skein/governance'
import type { DeliveryChanged } from '@skein/threads'
import { type JsonValue, messageOf, redactSecrets, SkeinError } from '@skein/base'
import { callIdOf } from '../state/calls.ts'
import { questionsAbout, undoneEvents, textOfWrites } from '../governance/failed-writes.ts'
import type { FailedSession } from '../governance/session-governors.ts'
import { hasEnded, stopBelow } from '../children/running-below.ts'
import { reportToParent } from '../children/report.ts'
import type { KernelAction } from '../loop/next.ts'
import { settleLateCalls } from './late.ts'
import { endOpenCalls } from './open-calls.ts'
import { isStoreError, type ThreadChange, type ThreadLifecycle } from '../store/store.ts'

/** Starts a session with the queued messages. `side` (A or B) is the side of the conversation that answers them. */
export async function beginSession(context: DrainContext, side: Side): Promise<void> {
  const { environment, agent, state } = context
  const at = context.at()
  const events: RuntimeEvent[] = []
  if (!state.session) {
    const { name, hash: definitions } = agent
    const sessionId = environment.ids()
    events.push({ type: 'session_start', at, sessionId, agent: name, definitions })
  }
  if (state.status !== 'running') events.push({ type: 'status_changed', at, status: 'running' })
  const answering = sideOf(agent, { side })
  const taken = await takeQueue(context, answering)
  events.push(...taken, ...turnStart(context, side))
  const head = { lifecycle: 'running', agent: agent.name } as const
  // If the parent sent the message, its list of children already says that this child is running.
  const isAsked = state.queue.some(({ metadata }) => metadata?.['from'] === 'parent')
  const others = isAsked || state.session ? [] : listedAs(context, { status: 'running' })
  const write = { events, others, head, isLazy: true, expectsNoMail: taken.length > 0 }
  if (await commitTaken(context, 'session_start', write))
    await afterStored(context, answering, taken)
}

/**
 * Commits events that take messages from the queue. Returns false if somebody has written to the log
 * meanwhile: a taken message may have been withdrawn, so the caller must decide again what to do.
 */
export async function commitTaken(
  context: DrainContext,
  point: string,
  write: Write,
): Promise<boolean> {
  try {
    await context.commit(point, write)
    return true
  } catch (error) {
    if (!isStoreError(error, 'LOG_MOVED')) throw error
    await context.catchUp()
    return false
  }
}

/**
 * Returns the events that move every queued message into the history, in order, and before them the news of earlier
 * calls. The hooks of `side`, the side of the conversation that will answer, process them. Messages that these hooks
 * queue stay queued until the next step.
 */
export async function takeQueue(
  context: DrainContext,
  side: ResolvedSide,
): Promise<RuntimeMessageAdded[]> {
  const taken: RuntimeMessageAdded[] = []
  const waiting = [...context.state.news, ...context.state.queue]
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

/** Returns a message from the runtime. Only the model whose turn it is sees the message. */
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
 * Returns the event that starts a step. If the step is tried again, `before` is the earlier attempt,
 * and the id of the step stays the same.
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

/**
 * Returns the event that says what became of answers that the gate had not judged: of those in `ids`, by default of all
 * that this session has, and of the answers among `spoken`, which are added in the same commit. None if there are none.
 */
export function judged(
  context: DrainContext,
  delivery: DeliveryChanged['delivery'],
  {
    reason,
    spoken = [],
    ids = [...(context.state.session?.pending ?? [])],
  }: {
    readonly reason?: string
    readonly spoken?: readonly RuntimeEvent[]
    readonly ids?: readonly string[]
  } = {},
): RuntimeEvent[] {
  const added = spoken.flatMap((event) =>
    event.type === 'message_added' && event.delivery === 'pending' ? event.message.id : [],
  )
  const messageIds = [...ids, ...added]
  if (messageIds.length === 0) return []
  const at = context.at()
  return [{ type: 'delivery_changed', at, messageIds, delivery, reason: reason || undefined }]
}

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
  const ended = await endOpenCalls(context, { why: whyEnded(outcome) })
  const failed =
    outcome !== 'completed' && (session.isGoverned || reachesChildren(context))
      ? await failGoverned(context, ending)
      : undefined
  const { message, undone, questions } = await consequencesOf(context, ending, failed)
  const cut = ended.filter(({ type }) => type !== 'interrupt_opened')
  const asked = [...withoutAsked(context, ended, questions), ...questions]
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
    ...cut,
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
    ...asked,
  ]
  const others = [
    ...reports.changes,
    ...undone.others,
    ...(outcome === 'stopped' ? stopAwaited(context) : []),
  ]
  const lifecycle = isOver ? 'terminated' : outcome === 'completed' ? 'idle' : outcome
  // The session's calls no longer wait. What people are asked about calls with an unknown outcome and about writes stays, and
  // so do the questions of effects (scheduled work) and requests for variables, unless the thread is over.
  const isLast = isOver || state.terminated !== undefined
  const stays = openForPeople(state).filter(({ isDetached, effectId }) =>
    isOver ? false : isDetached || (!isLast && effectId !== undefined),
  )
  const variables = openVariables(state, context.environment.clock.now())
  const waiting = asked.length + stays.length + (isLast ? 0 : variables.length)
  const head = { waiting, lifecycle } as const
  const events = eventsIf(isUndelivered)
  const undelivered = eventsIf(!isCut)
  const write: Write = { events, undelivered, others, blobs, isProgress: true, head }
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
    try {
      const head = { lifecycle: 'stopping' } as const
      // The commit must not be made again with the same changes: a subagent may have taken the message meanwhile.
      const write = { events, others, head, isProgress: true, expectsNoMail: true }
      await context.commit('session_failing', write)
      return true
    } catch (error) {
      if (!isStoreError(error, 'LOG_MOVED')) throw error
      await context.catchUp()
    }
  }
  return false
}

/** How often the subagents of a session that fails are read again because one of them has just taken a message. */
const MOST_STOP_TRIES = 5

/** Ends a session that fails if the subagents that work for it have stopped; returns whether they have. */
export async function endFailing(context: DrainContext): Promise<boolean> {
  const { failing } = context.state.session ?? {}
  if (!failing) return true
  for (const one of failing.below)
    if (!(await hasEnded(context.environment.store, one))) return false
  await endSession(context, failing)
  return true
}

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
function isDisposable({ parent }: KernelState): boolean {
  return parent !== undefined && !parent.isResumable
}

/** Returns the event that ends a child after its report. */
function reportedEnd(context: DrainContext): RuntimeEvent {
  return { type: 'thread_terminated', at: context.at(), hasReported: true }
}

/**
 * Tells the governor, which judges calls and results, that its session failed. A session that is given up has to end
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

/**
 * Returns the changes that stop the running children for which a call of this thread waits, because nobody
 * will read their results.
 */
export function stopAwaited(context: DrainContext): ThreadChange[] {
  const { state, environment } = context
  const at = context.at()
  return awaitedChildren(state).flatMap((id) => {
    const lifecycle = state.children.get(id)?.lifecycle
    if (lifecycle !== 'running' && lifecycle !== 'awaiting_human') return []
    const append = [{ type: 'stop_requested', at } as const]
    return [{ id, append, wake: { by: environment.clock.now() } }]
  })
}

/**
 * Ends the session, because a user pressed stop or because the thread was terminated. In a terminated thread without
 * a session, the messages that wait in the queue are withdrawn, and the parent gets an answer to those it waits for;
 * the questions about calls with an unknown outcome, which nothing waits for, are asked again.
 */
export async function close(
  context: DrainContext,
  outcome: 'stopped' | 'terminated',
): Promise<void> {
  const message = outcome === 'stopped' ? '' : 'The thread was terminated.'
  const ending = { outcome, reason: outcome, message, attachments: [] }
  if (context.state.session) return endSession(context, ending)
  const at = context.at()
  const { queue, interrupts } = context.state
  const events: RuntimeEvent[] = queue.map(({ queueId }) => ({
    type: 'message_unqueued',
    at,
    queueId,
  }))
  for (const { interrupt, turnId, isDropped, write } of interrupts.values())
    if (isDropped) events.push({ type: 'interrupt_opened', at, turnId, interrupt, write })
  const { changes: others, blobs } = await reportToParent(context, ending)
  await context.commit('session_end', { events, others, blobs, isProgress: true })
}

/** Answers an interrupt (a waiting call) that has expired with an error, which the model gets as the call's result. */
export async function expire(context: DrainContext, interruptId: string): Promise<void> {
  const answer = { type: 'error', message: 'Nobody answered in time.' } as const
  const events = [{ type: 'interrupt_answered' as const, at: context.at(), interruptId, answer }]
  await context.commit('expire', { events, isProgress: true })
}

/**
 * Terminates the children of a terminated thread; each child then terminates its own children. The list
 * of children is complete, because a terminated thread creates no more.
 */
export async function cascade(context: DrainContext, references: readonly string[]): Promise<void> {
  const at = context.at()
  const wake = { by: context.environment.clock.now() }
  const others: ThreadChange[] = []
  for (const id of references) {
    const head = await context.environment.store.head(id)
    if (!head || head.lifecycle === 'terminated' || head.lifecycle === 'erased') continue
    const append: RuntimeEvent[] = [{ type: 'thread_terminated', at }]
    others.push({ id, append, head: { lifecycle: 'terminated' }, wake })
  }
  const events = references.map(
    (reference) => ({ type: 'subagent_ended', at, reference, outcome: 'terminated' }) as const,
  )
  await context.commit('cascade', { events, others, isProgress: true })
}

/**
 * A thread that waits longer than this for its model's vendor, before a retry, has the status `waiting`
 * instead of `running`.
 */
const LONG_WAIT_MS = 60_000

/**
 * Commits that the thread waits until `wakeAt`, and returns true: the work on it ends. Returns false if
 * another writer has appended to the log meanwhile: the work goes on.
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
  if (session?.failing) lifecycle = 'stopping'
  if (state.terminated) lifecycle = 'terminated'
  const text = retry && waitText(retry)
  const isNew = lifecycle !== state.status || (retry && text !== state.statusText)
  const waiting = waitingCount(state, context.environment.clock.now())
  const { startedAt: _, ...usage } = state.usage
  const told = toldToParent(context)
  const status = { type: 'status_changed', at: context.at(), status: lifecycle, text } as const
  try {
    await context.commit('park', {
      events: isNew || told.others.length > 0 ? [{ ...status, ...told.field }] : [],
      others: told.others,
      head: { lifecycle, waiting, ...usage },
      wake: { exactly: wakeAt },
      expectsNoMail: true,
      isProgress: true,
      releases: true,
    })
    return true
  } catch (error) {
    if (!isStoreError(error, 'LOG_MOVED')) throw error
    await context.catchUp()
    return false
  }
}

/**
 * Checks whether the parent's list of children says correctly whether this child waits for a person.
 * Returns the change that corrects the list, if one is needed, and the field of `status_changed` that
 * records what the list then says.
 */
export function toldToParent(context: DrainContext): {
  readonly others: readonly ThreadChange[]
  readonly field: { readonly awaitsPerson?: true }
} {
  const { state } = context
  const isAwaiting =
    state.parent !== undefined &&
    state.session !== undefined &&
    (openForPeople(state).some(({ isDetached }) => !isDetached) || waitsBelow(state))
  const field = isAwaiting ? ({ awaitsPerson: true } as const) : {}
  // Outside a session nothing is corrected: the end of a session is reported to the parent separately.
  if (isAwaiting === state.isToldAwaiting || !state.session) return { others: [], field }
  return { others: listedAs(context, { status: isAwaiting ? 'awaiting_human' : 'running' }), field }
}

/** Whether a call of the thread waits for a child that, itself or through its own children, waits for a person. */
function waitsBelow(state: KernelState): boolean {
  return awaitedChildren(state).some(
    (reference) => state.children.get(reference)?.lifecycle === 'awaiting_human',
  )
}

/** Returns the children for whose results calls of the thread wait. */
function awaitedChildren({ interrupts }: KernelState): readonly string[] {
  return [...interrupts.values()].flatMap(({ interrupt: { kind, request }, answer }) =>
    kind !== 'child' || answer
      ? []
      : [String((request as { readonly reference?: unknown } | null)?.reference)],
  )
}

/** Corrects the parent's list if it still says that this child waits for a person; returns whether it did. */
export async function tellParent(context: DrainContext): Promise<boolean> {
  const { state } = context
  if (!state.isToldAwaiting) return false
  const { others } = toldToParent(context)
  if (others.length === 0) return false
  const events = [{ type: 'status_changed', at: context.at(), status: 'running' } as const]
  await context.commit('tell', { events, others, head: { lifecycle: 'running' } })
  return true
}

/**
 * Fails a thread for which `next` returned the same action twice, although the first one changed nothing: `next`
 * would return it for ever. Returns true if the thread has no session to fail, so that the work on it must end.
 */
export async function failWithoutProgress(context: DrainContext, action: string): Promise<boolean> {
  const { state } = context
  const message = `The thread cannot continue: the action "${action}" changed nothing at event ${state.seq}.`
  const error: RuntimeEvent = {
    type: 'error_raised',
    at: context.at(),
    code: 'NO_PROGRESS',
    message,
    hint: 'This is a defect of the runtime; please report it. A new message starts another session.',
  }
  if (state.session) {
    const ending = { outcome: 'failed', reason: 'no_progress', message } as const
    await endSession(context, { ...ending, spoken: [error] })
    return false
  }
  const head = { lifecycle: 'failed' } as const
  const write: Write = { events: [error], head, wake: { exactly: null }, isProgress: true }
  try {
    await context.commit('park', { ...write, expectsNoMail: true, releases: true })
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

/** Why a thread cannot continue in this process. The waiting thread shows `text` as its status. */
interface Missing {
  readonly code: 'AGENT_NOT_FOUND' | 'AGENT_CHANGED'
  readonly text: string
  readonly hint: string
}

/**
 * Returns what a thread needs and this process lacks: its agent or, with `pin: 'session'`, the
 * definitions with which its session began. Returns undefined if the thread can continue here.
 */
export function missingHere(
  { agent, session }: Pick<KernelState, 'agent' | 'session'>,
  { registry, pin }: Pick<KernelEnvironment, 'registry' | 'pin'>,
): Missing | undefined {
  const found = registry.agents.get(agent)
  if (!found) {
    const names = [...registry.agents.keys()].join(', ') || 'none'
    const hint = `The thread continues when a process has this agent. Agents here: ${names}.`
    return { code: 'AGENT_NOT_FOUND', text: missingText(agent), hint }
  }
  const { definitions } = session ?? {}
  if (pin !== 'session' || definitions === undefined || definitions === found.hash) return undefined
  const hint = `The session continues when a process has them (here: ${found.hash.slice(0, 8)}). To continue with the definitions here, stop the thread and resume it.`
  return { code: 'AGENT_CHANGED', text: changedText(agent, definitions), hint }
}

/** Whether the thread waits because the last process lacked its agent, or its version of the agent. */
export function waitsForAgent({ status, statusText, agent, session }: KernelState): boolean {
  if (status !== 'waiting') return false
  const { definitions = '' } = session ?? {}
  return statusText === missingText(agent) || statusText === changedText(agent, definitions)
}

function missingText(agent: string): string {
  return `Waits for the agent "${agent}", which is not defined here.`
}

function changedText(agent: string, definitions: string): string {
  return `Waits for the definitions ${definitions.slice(0, 8)} of the agent "${agent}", with which its session began.`
}

/** Returns the field of a `status_changed` event that repeats what the parent knows: whether a person is awaited. */
export function asTold({ isToldAwaiting }: KernelState): { readonly awaitsPerson?: true } {
  return isToldAwaiting ? { awaitsPerson: true } : {}
}

/**
 * Writes, once, that the thread waits for its agent, and gives its lease back. The thread stays due, so
 * that a process that has the agent continues it at once.
 */
export async function awaitAgent(context: DrainContext, missing: Missing): Promise<void> {
  const { state, environment } = context
  const at = context.at()
  const { code, text, hint } = missing
  const events: RuntimeEvent[] = [
    { type: 'error_raised', at, code, message: text, hint },
    { type: 'status_changed', at, status: 'waiting', text, ...asTold(state) },
  ]
  await context.commit('await_agent', {
    events: state.statusText === text ? [] : events,
    head: { lifecycle: 'waiting' },
    wake: { by: environment.clock.now() },
    releases: true,
  })
}

/** How many lines of a stack are kept. */
const STACK_LINES = 5

const withoutFolders = (word: string): string =>
  word.slice(Math.max(word.lastIndexOf('/'), word.lastIndexOf('\\')) + 1)

/** Describes an error for the log of the thread that failed because of it. */
export function failureCause(error: unknown): FailureCause {
  const { code, hint } = SkeinError.is(error) ? error : { code: undefined, hint: undefined }
  const lines = stackOf(error).split('\n')
  const stack = lines
    .filter((line) => line.trimStart().startsWith('at '))
    .slice(0, STACK_LINES)
    // Folders are removed: they tell where the program is installed, which readers of the log need not know.
    .map((line) =>
      line
        .trim()
        .split(/([\s(])/)
        .map(withoutFolders)
        .join(''),
    )
  const cause = {
    code,
    message: redactSecrets(messageOf(error), []),
    hint,
    stack: stack.length > 0 ? stack.join('\n') : undefined,
  }
  // The conversion removes undefined members, which an event must not have.
  return JSON.parse(JSON.stringify(cause)) as FailureCause
}

/** Returns the stack of an error, without secrets. Code of the application may throw anything, e.g. a proxy. */
function stackOf(error: unknown): string {
  try {
    const { stack } = error as { readonly stack?: unknown }
    return typeof stack === 'string' ? redactSecrets(stack, []) : ''
  } catch {
    return ''
  }
}

/**
 * Marks a thread as failed that failed too often without progress, and writes the cause to its log. Needs
 * neither the agent nor the governor of the thread, because a missing agent or governor may be the cause.
 */
export async function failStuck(context: DrainContext, cause: FailureCause): Promise<void> {
  const { environment, state } = context
  const { drainAttempts } = environment.limits
  const name = cause.code === undefined ? '' : `${cause.code}: `
  const message = `The thread is parked: ${drainAttempts} attempts to continue it failed. ${name}${cause.message}`
  const error: RuntimeEvent = {
    type: 'error_raised',
    at: context.at(),
    code: 'DRAIN_FAILED',
    message,
    hint: cause.hint ?? 'Fix the cause, then resume the thread.',
    cause,
  }
  const ending = { outcome: 'failed', reason: 'drain_failed', message, cause } as const
  const hadSession = state.session !== undefined
  if (hadSession) await endSession(context, ending)
  // The parent needs an answer if there was no session to end, or if one of its calls still waits for
  // the answer to a message in the queue.
  const isHeard = hadSession && !isAwaited(context.state)
  const { changes: others, blobs } = isHeard
    ? { changes: [], blobs: [] }
    : await reportToParent(context, { ...ending, attachments: [] })
  const isOver = isDisposable(context.state)
  const events = isOver && !context.state.terminated ? [error, reportedEnd(context)] : [error]
  const lifecycle = isOver ? 'terminated' : 'failed'
  const write: Write = { events, others, blobs, head: { lifecycle }, releases: true }
  for (;;) {
    // A request to resume may just have arrived; its wake-up must not be removed. A child that is over
    // must run once more to terminate its own children.
    const mustGoOn = context.state.resume !== undefined || isOver
    const wake = mustGoOn ? { by: environment.clock.now() } : { exactly: null }
    try {
      await context.commit('fail_stuck', { ...write, wake, expectsNoMail: true, isProgress: true })
      return
    } catch (error) {
      if (!isStoreError(error, 'LOG_MOVED')) throw error
      await context.catchUp()
    }
  }
}
