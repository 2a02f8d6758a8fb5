import type { JsonValue } from '@skein/base'
import type { ResolvedSide } from '../definitions/resolved.ts'
import { agentRegistrations } from '../api/agent-registrations.ts'
import type { RuntimeEvent, SessionOutcome } from '../event.ts'
import { isStoreError, type ThreadChange } from '../store/store.ts'
import type { Side } from '../thread-state.ts'
import type { StepDecision } from './decide.ts'
import { textOf } from './decide.ts'
import type { DrainContext, Write } from './drain-context.ts'
import { isWaiting, openCalls, sideOf } from './next.ts'
import { stepStart } from './step-start.ts'
import { noteMessage, takeQueue, tellCreated } from './queue.ts'
import { readOutput } from './read-output.ts'
import { reportToParent } from './report.ts'
import type { KernelState, Turn } from './state.ts'

/** Starts a session with what waits in the inbox; the last message says which side answers. */
export async function beginSession(context: DrainContext, side: Side): Promise<void> {
  const { environment, agent, state } = context
  const at = context.at()
  const events: RuntimeEvent[] = []
  if (!state.session)
    events.push({ type: 'session_start', at, sessionId: environment.ids(), agent: agent.name })
  if (state.status !== 'running') events.push({ type: 'status_changed', at, status: 'running' })
  const answering = sideOf(agent, { side })
  const taken = await takeQueue(context, answering)
  events.push(...taken)
  events.push(...turnStart(context, side))
  await context.commit('session_start', {
    events,
    head: { lifecycle: 'running', agent: agent.name },
  })
  await tellCreated(context, answering, taken)
}

/** A turn and its first step. */
function turnStart(context: DrainContext, side: Side): RuntimeEvent[] {
  const agentId = `${context.agent.name}/${side}`
  const turnId = context.environment.ids()
  const at = context.at()
  return [{ type: 'turn_start', at, turnId, agentId, side }, stepStart(context, { turnId, side })]
}

/** Commits what follows from a finished step. */
export async function endStep(
  context: DrainContext,
  side: ResolvedSide,
  decision: StepDecision,
): Promise<void> {
  if (context.state.stop === 'after_step' && decision.type !== 'end_session')
    return endSession(context, { outcome: 'stopped', reason: 'stopped', message: '' })
  switch (decision.type) {
    case 'continue':
      return goOn(context, decision.nudge)
    case 'handoff':
      return handOff(context, side, decision)
    case 'yield':
      return yieldTurn(context, side, decision)
    case 'end_session':
      return endGoverned(context, decision)
  }
}

async function goOn(context: DrainContext, nudge: string | undefined): Promise<void> {
  const events: RuntimeEvent[] = stepEnd(context)
  if (nudge !== undefined) events.push(noteMessage(context, nudge, 'nudge'))
  const turn = context.state.session?.turn
  if (turn) events.push(stepStart(context, { turnId: turn.id, side: turn.side }))
  await context.commit('step_end', { events, isProgress: true })
}

function stepEnd(context: DrainContext): RuntimeEvent[] {
  const turn = context.state.session?.turn
  if (!turn?.step) return []
  return [{ type: 'step_end', at: context.at(), turnId: turn.id, stepId: turn.step.id }]
}

function turnEnd(
  context: DrainContext,
  outcome: 'completed' | 'interrupted' | 'failed',
  reason: string,
): RuntimeEvent[] {
  const turn = context.state.session?.turn
  if (!turn) return []
  return [{ type: 'turn_end', at: context.at(), turnId: turn.id, outcome, reason }]
}

/** With a person the session is over; between two models the other side has its turn. */
async function yieldTurn(
  context: DrainContext,
  side: ResolvedSide,
  { reason, text }: Extract<StepDecision, { type: 'yield' }>,
): Promise<void> {
  const { agent, state } = context
  const output = reason === 'response' ? await readOutput(side, text) : undefined
  if (output && 'problem' in output) return refuseOutput(context, side, output.problem)
  const spoken = reason === 'stop_tool' ? liftedText(context, text) : []
  const end = {
    outcome: 'completed',
    reason,
    message: text,
    spoken,
    isTurnOver: true,
    ...(output && { data: output.data }),
  } as const
  if (agent.type !== 'dual_ai') return endGoverned(context, end)
  const turns = (state.session?.turns ?? 0) + 1
  if (turns >= agent.maxSessionTurns) {
    const message = `The session took ${turns} turns, as many as it may.`
    return endGoverned(context, {
      ...end,
      outcome: 'failed',
      reason: 'max_session_turns',
      message,
    })
  }
  const events = [
    ...spoken,
    ...stepEnd(context),
    ...turnEnd(context, 'completed', reason),
    ...turnStart(context, side.side === 'a' ? 'b' : 'a'),
  ]
  await context.commit('turn_end', { events, isProgress: true })
}

/** An answer of the wrong shape is told to the model, twice in a session; then it has failed. */
async function refuseOutput(
  context: DrainContext,
  side: ResolvedSide,
  problem: string,
): Promise<void> {
  const { state } = context
  const told = state.entries
    .slice(state.session?.firstEntry)
    .filter(({ metadata }) => metadata?.['kind'] === 'output' && metadata['for'] === side.side)
  if (told.length >= 2) {
    const message = `${side.label} did not answer in the shape that was asked for: ${problem}.`
    return endSession(context, { outcome: 'failed', reason: 'invalid_output', message })
  }
  const note = `Your answer does not have the shape that was asked for: ${problem}. Answer again, with the JSON alone.`
  const events = [...stepEnd(context), noteMessage(context, note, 'output')]
  await context.commit('output_refused', { events, isProgress: true })
}

/** What a stop tool was told to say is said, unless the model wrote the same beside it. */
function liftedText(context: DrainContext, text: string): RuntimeEvent[] {
  const { state } = context
  const turn = state.session?.turn
  const entry = turn?.step?.entry === undefined ? undefined : state.entries[turn.step.entry]
  if (!turn || !entry || text === '' || textOf(entry) === text) return []
  return [saidBySide(context, turn, text)]
}

function saidBySide(context: DrainContext, turn: Turn, text: string): RuntimeEvent {
  const { environment, agent } = context
  const at = context.at()
  const message = {
    id: environment.ids(),
    type: 'assistant' as const,
    timestamp: at,
    content: [{ type: 'text' as const, text }],
  }
  return {
    type: 'message_added',
    at,
    turnId: turn.id,
    message,
    side: turn.side,
    agentId: `${agent.name}/${turn.side}`,
  }
}

/** The thread goes to another agent; history stays, its side A speaks at once. */
async function handOff(
  context: DrainContext,
  side: ResolvedSide,
  { agent: to }: Extract<StepDecision, { type: 'handoff' }>,
): Promise<void> {
  const { environment, agent, state } = context
  const at = context.at()
  const session = state.session
  const turn = session?.turn
  if (!session || !turn) return
  const delivery = await deliverOf(context, '')
  if (delivery.type !== 'delivered') return notDelivered(context, delivery)
  const toAgentId = `${to}/a`
  const events: RuntimeEvent[] = [
    ...stepEnd(context),
    ...turnEnd(context, 'completed', 'handoff'),
    { type: 'session_end', at, sessionId: session.id, outcome: 'completed', reason: 'handoff' },
    {
      type: 'agent_handoff',
      at,
      turnId: turn.id,
      fromAgentId: `${agent.name}/${side.side}`,
      toAgentId,
    },
    ...agentRegistrations(environment.registry.agent(to), at),
    {
      type: 'session_start',
      at,
      sessionId: environment.ids(),
      agent: to,
      waiters: session.waiters,
    },
    { type: 'turn_start', at, turnId: environment.ids(), agentId: toAgentId, side: 'a' },
  ]
  await context.commit('handoff', { events, isProgress: true, head: { agent: to } })
  context.dropGovernor()
}

type SessionEnding = Pick<Extract<StepDecision, { type: 'end_session' }>, 'reason' | 'message'> & {
  readonly outcome: SessionOutcome
  readonly attachments?: readonly string[]
  readonly data?: JsonValue
  /** What the side still says, in the same commit. */
  readonly spoken?: readonly RuntimeEvent[]
  /** The turn came to its end, whatever becomes of the session. */
  readonly isTurnOver?: boolean
}

/** A result is delivered only if the gate lets it. */
async function endGoverned(context: DrainContext, ending: SessionEnding): Promise<void> {
  if (ending.outcome !== 'completed') return endSession(context, ending)
  const delivery = await deliverOf(context, ending.message)
  if (delivery.type !== 'delivered') return notDelivered(context, delivery)
  return endSession(context, ending)
}

type Judgement =
  { readonly type: 'delivered' } | { readonly type: 'repair' | 'fail_safe'; readonly text: string }

/** Sessions that neither ran a governed tool nor have a task class have nothing to judge. */
async function deliverOf(context: DrainContext, candidate: JsonValue): Promise<Judgement> {
  const { agent, state } = context
  if (!agent.definition.taskClass && !state.session?.isGoverned) return { type: 'delivered' }
  const governor = await context.governor()
  const delivery = await governor.deliver(candidate)
  if (delivery.type === 'delivered') return { type: 'delivered' }
  const reasons = delivery.type === 'repair' ? delivery.why : delivery.result.reasons
  const text = reasons
    .map(({ code, detail }) => (detail === undefined ? code : `${code} (${detail})`))
    .join(', ')
  return { type: delivery.type, text }
}

async function notDelivered(
  context: DrainContext,
  { type, text }: Exclude<Judgement, { type: 'delivered' }>,
): Promise<void> {
  if (type === 'fail_safe')
    return endSession(context, {
      outcome: 'failed',
      reason: 'fail_safe',
      message: `The result was not delivered: ${text}.`,
    })
  const note = `Your answer was not delivered: ${text}. Mend this and answer again.`
  const events = [...stepEnd(context), noteMessage(context, note, 'gate')]
  await context.commit('repair', { events, isProgress: true })
}

/** Ends the session, and tells the parent in the same transaction. */
export async function endSession(context: DrainContext, ending: SessionEnding): Promise<void> {
  const { state } = context
  const session = state.session
  if (!session) return
  if (ending.outcome !== 'completed' && session.isGoverned) {
    const governor = await context.governor()
    await governor.fail(ending.reason, ending.message)
  }
  const { outcome, reason, message, attachments = [], data, spoken = [] } = ending
  const isCut = outcome === 'stopped' || outcome === 'terminated'
  const reports = await reportToParent(context, { ...ending, attachments })
  const isUndelivered = state.parent !== undefined && reports.length === 0 && !isCut
  const events: RuntimeEvent[] = [
    ...cutCalls(context, outcome),
    ...spoken,
    ...stepEnd(context),
    ...turnEnd(context, turnOutcome(ending), reason),
    {
      type: 'session_end',
      at: context.at(),
      sessionId: session.id,
      outcome,
      reason,
      ...((message !== '' || !isCut) && { message }),
      ...(attachments.length > 0 && { attachments }),
      ...(data !== undefined && { data }),
      ...(isUndelivered && { isUndelivered }),
    },
  ]
  const others = [...reports, ...(outcome === 'stopped' ? stopAwaited(context) : [])]
  const head = { waiting: 0, lifecycle: lifecycleAfter[outcome] }
  await context.commit('session_end', { events, others, isProgress: true, head })
  context.dropGovernor()
}

const lifecycleAfter = {
  completed: 'idle',
  failed: 'failed',
  stopped: 'stopped',
  terminated: 'terminated',
} as const

function turnOutcome({
  outcome,
  isTurnOver,
}: SessionEnding): 'completed' | 'interrupted' | 'failed' {
  if (outcome === 'completed' || isTurnOver) return 'completed'
  return outcome === 'failed' ? 'failed' : 'interrupted'
}

/** Calls that had no result get one, or no vendor would take the history again. */
function cutCalls(context: DrainContext, outcome: SessionOutcome): RuntimeEvent[] {
  const turnId = context.state.session?.turn?.id ?? ''
  const why =
    outcome === 'stopped' ? 'The user stopped the run.' : `The session ended (${outcome}).`
  return openCalls(context.state).map(({ call: { toolCallId, toolName } }) => ({
    type: 'tool_execution_end' as const,
    at: context.at(),
    turnId,
    toolCallId,
    toolName,
    outcome: 'interrupted' as const,
    result: `${why} This call has no result.`,
  }))
}

/** A child that a call waits for stops with it: nobody would hear its result. */
function stopAwaited(context: DrainContext): ThreadChange[] {
  const { state, environment } = context
  const at = context.at()
  return [...state.interrupts.values()].flatMap(({ interrupt: { kind, request }, answer }) => {
    const reference = kind === 'child' && !answer ? referenceOf(request) : undefined
    if (reference === undefined || !isLive(state, reference)) return []
    const append = [{ type: 'stop_requested', at } as const]
    return [{ id: reference, append, wake: { by: environment.clock.now() } }]
  })
}

function referenceOf(request: unknown): string | undefined {
  const reference = (request as { readonly reference?: unknown } | null)?.reference
  return typeof reference === 'string' ? reference : undefined
}

function isLive({ children }: KernelState, reference: string): boolean {
  const lifecycle = children.get(reference)?.lifecycle
  return lifecycle === 'running' || lifecycle === 'awaiting_human'
}

/** The stop button, or the end of the thread. */
export async function close(
  context: DrainContext,
  outcome: 'stopped' | 'terminated',
): Promise<void> {
  const message = outcome === 'stopped' ? '' : 'The thread was terminated.'
  return endSession(context, { outcome, reason: outcome, message })
}

/** A waiting call that nobody answered is told to the model. */
export async function expire(context: DrainContext, interruptId: string): Promise<void> {
  const answer = { type: 'error', message: 'Nobody answered in time.' } as const
  const events = [{ type: 'interrupt_answered' as const, at: context.at(), interruptId, answer }]
  await context.commit('expire', { events, isProgress: true })
}

/** Terminates children, each with its own descendants in turn. Nothing can be attached meanwhile. */
export async function cascade(context: DrainContext, references: readonly string[]): Promise<void> {
  const at = context.at()
  const now = context.environment.clock.now()
  const others: ThreadChange[] = []
  for (const id of references) {
    const head = await context.environment.store.head(id)
    if (!head || head.lifecycle === 'terminated' || head.lifecycle === 'erased') continue
    const append: RuntimeEvent[] = [{ type: 'thread_terminated', at }]
    others.push({
      id,
      append,
      raisesEpoch: true,
      head: { lifecycle: 'terminated' },
      wake: { by: now },
    })
  }
  const events = references.map(
    (reference) => ({ type: 'subagent_ended', at, reference, outcome: 'terminated' }) as const,
  )
  await context.commit('cascade', { events, others, isProgress: true })
}

/** Nothing to do: says when to look again. False when mail came meanwhile. */
export async function park(context: DrainContext, wakeAt: number | null): Promise<boolean> {
  const { state } = context
  const waiting = [...state.interrupts.values()].filter(
    ({ answer, interrupt }) =>
      !answer && (interrupt.kind === 'approval' || interrupt.kind === 'input'),
  ).length
  const head = {
    lifecycle: lifecycleOf(context),
    waiting,
    tokens: state.usage.tokens,
    costUsd: state.usage.costUsd,
  }
  const status = statusEvent(context, head.lifecycle)
  try {
    await context.commit('park', {
      ...(status && { events: [status] }),
      head,
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

function lifecycleOf({
  state,
}: DrainContext): 'idle' | 'waiting' | 'stopped' | 'failed' | 'terminated' | 'running' {
  if (state.terminated) return 'terminated'
  if (state.session)
    return openCalls(state).some((call) => isWaiting(state, call)) ? 'waiting' : 'running'
  if (state.stop === 'stopped') return 'stopped'
  return state.lastSession?.outcome === 'failed' ? 'failed' : 'idle'
}

function statusEvent(
  context: DrainContext,
  status: ReturnType<typeof lifecycleOf>,
): RuntimeEvent | undefined {
  if (status === context.state.status) return undefined
  return { type: 'status_changed', at: context.at(), status }
}

/** Something in this thread ends every drain: it is parked, with the reason in its log. */
export async function failStuck(context: DrainContext): Promise<void> {
  const message = `The thread was taken up ${context.head.attempts} times without getting on; it is parked.`
  const error = {
    type: 'error_raised',
    at: context.at(),
    code: 'DRAIN_FAILED',
    message,
    hint: 'Resume it when the cause is mended.',
  } as const
  const ending = { outcome: 'failed', reason: 'drain_failed', message } as const
  const hadSession = context.state.session !== undefined
  if (hadSession) await endSession(context, ending)
  await parkStuck(context, {
    events: [error],
    // A parent may wait for a child that could not even begin.
    others: hadSession ? [] : await reportToParent(context, { ...ending, attachments: [] }),
  })
}

/** Somebody may ask to go on in the same moment; that must not be overwritten. */
async function parkStuck(
  context: DrainContext,
  write: Pick<Write, 'events' | 'others'>,
): Promise<void> {
  const now = context.environment.clock.now()
  try {
    await context.commit('fail_stuck', {
      ...write,
      head: { lifecycle: 'failed' },
      wake: context.state.resume ? { by: now } : { exactly: null },
      expectsNoMail: true,
      isProgress: true,
    })
  } catch (error) {
    if (!isStoreError(error, 'LOG_MOVED')) throw error
    await context.catchUp()
    await parkStuck(context, write)
  }
}
