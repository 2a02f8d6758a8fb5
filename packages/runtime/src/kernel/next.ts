import type { ResolvedAgent, ResolvedSide } from '../definitions/resolved.ts'
import type { MessageQueued } from '../event.ts'
import type { Side } from '../thread-state.ts'
import { decideStep, type StepDecision } from './decide.ts'
import type { RuntimeLimits } from './environment.ts'
import type { CallState, Entry, KernelState, Session, Turn } from './state.ts'

/** What a drain does next. Each is performed by one function of `act-*.ts` and ends in a commit. */
export type Action =
  /** Nothing to do until mail comes, or until `wakeAt`. */
  | { readonly type: 'park'; readonly wakeAt: number | null }
  /** A terminated thread takes its children with it. */
  | { readonly type: 'cascade'; readonly references: readonly string[] }
  /** The session is cut short. */
  | { readonly type: 'close'; readonly outcome: 'stopped' | 'terminated' }
  /** Calls that ran when a process died. */
  | { readonly type: 'settle_in_doubt'; readonly calls: readonly CallState[] }
  /** An interrupt nobody answered in time. */
  | { readonly type: 'expire'; readonly interruptId: string }
  /** A deferred child whose variables have come. */
  | { readonly type: 'boot_child'; readonly requestId: string }
  | { readonly type: 'run_effect'; readonly effectId: string }
  /** A prompt became active: hooks, and children that start by themselves. */
  | { readonly type: 'activate' }
  | { readonly type: 'begin_session'; readonly side: Side }
  | { readonly type: 'infer'; readonly side: ResolvedSide }
  | { readonly type: 'run_calls'; readonly side: ResolvedSide; readonly entry: Entry }
  | { readonly type: 'end_step'; readonly side: ResolvedSide; readonly decision: StepDecision }

export interface NextOptions {
  readonly agent: ResolvedAgent
  /** Epoch of the drain that asks: what another one started is in doubt. */
  readonly epoch: number
  /** Milliseconds since the epoch. */
  readonly now: number
  readonly limits: RuntimeLimits
}

/** The one place that says what happens next. Pure: no clock, no I/O. */
export function next(state: KernelState, options: NextOptions): Action {
  const { session } = state
  if (state.isErased) return park(null)
  if (state.terminated) return afterTermination(state)
  if (session && state.stop === 'requested') return { type: 'close', outcome: 'stopped' }
  return (
    inDoubt(state, options) ??
    expired(state, options) ??
    deferredChild(state) ??
    dueEffect(state, options) ??
    activation(state, options) ??
    (session ? inSession(state, session, options) : outOfSession(state, options))
  )
}

function park(wakeAt: number | null): Action {
  return { type: 'park', wakeAt }
}

function afterTermination(state: KernelState): Action {
  if (state.session) return { type: 'close', outcome: 'terminated' }
  if (state.terminated?.isDetached) return park(null)
  const references = [...state.children.values()]
    // Also those that are done: a report of their own children would begin another session.
    .filter(({ lifecycle }) => lifecycle !== 'terminated')
    .map(({ created }) => created.reference)
  return references.length > 0 ? { type: 'cascade', references } : park(null)
}

function inDoubt(state: KernelState, { epoch }: NextOptions): Action | undefined {
  const calls = openCalls(state).filter(
    ({ startedEpoch }) => startedEpoch !== undefined && startedEpoch !== epoch,
  )
  return calls.length > 0 ? { type: 'settle_in_doubt', calls } : undefined
}

/** Calls of the running step without an outcome. */
export function openCalls({ session, entries }: KernelState): readonly CallState[] {
  const place = session?.turn?.step?.entry
  if (place === undefined) return []
  return entries[place]!.calls.filter(({ outcome }) => outcome === undefined)
}

function expired(state: KernelState, { now }: NextOptions): Action | undefined {
  for (const [interruptId, { answer, expiresAt }] of state.interrupts)
    if (!answer && expiresAt !== undefined && Date.parse(expiresAt) <= now)
      return { type: 'expire', interruptId }
  return undefined
}

function deferredChild({ variables }: KernelState): Action | undefined {
  for (const [requestId, { provided, reference, error }] of variables)
    if (provided && reference === undefined && error === undefined)
      return { type: 'boot_child', requestId }
  return undefined
}

function dueEffect({ effects }: KernelState, { now }: NextOptions): Action | undefined {
  let first: { readonly effectId: string; readonly at: number } | undefined
  for (const [effectId, { runAt }] of effects) {
    const at = Date.parse(runAt)
    if (at <= now && (!first || at < first.at)) first = { effectId, at }
  }
  return first && { type: 'run_effect', effectId: first.effectId }
}

function activation(state: KernelState, { agent }: NextOptions): Action | undefined {
  if (state.immediateFor === agent.name || !startsSomething(agent)) return undefined
  return { type: 'activate' }
}

/** Whether there is anything to do when a prompt of this agent becomes active. */
export function startsSomething({ a, b }: ResolvedAgent): boolean {
  return [a, b].some(
    (side) =>
      side?.hooks.some(({ hook }) => hook === 'after_thread_created') ||
      side?.prompt.tools.some((tool) => tool.kind === 'subagent' && tool.relation.isImmediate),
  )
}

/** A blocking child that started by itself is waited for before the first step. */
function waitsForImmediate({ children }: KernelState): boolean {
  for (const { created, lifecycle } of children.values())
    if (
      created.isImmediate &&
      created.isBlocking &&
      (lifecycle === 'running' || lifecycle === 'awaiting_human')
    )
      return true
  return false
}

function outOfSession(state: KernelState, options: NextOptions): Action {
  const { queue, stop, resume } = state
  const wakeAt = nextTime(state)
  if (waitsForImmediate(state)) return park(wakeAt)
  if (resume) return { type: 'begin_session', side: resumedSide(state, options) }
  if (queue.length === 0) return park(wakeAt)
  // After the stop button only a person goes on; what was there before, and reports of children, wait.
  if (stop === 'stopped' && !queue.some((queued) => isAfterStop(state, queued))) return park(wakeAt)
  return { type: 'begin_session', side: sideOfLast(state, options) }
}

/** Who was asked for, else who a message is for, else whose turn it is. */
function resumedSide(state: KernelState, options: NextOptions): Side {
  const side = state.resume?.side ?? (state.queue.length > 0 ? undefined : state.nextSide)
  if (side === undefined) return sideOfLast(state, options)
  return options.agent.b ? side : 'a'
}

function isAfterStop({ queuedIds, stopSeq }: KernelState, queued: MessageQueued): boolean {
  return queued.resumes === true && (queuedIds.get(queued.queueId) ?? 0) > stopSeq
}

/** Messages are taken in order; the last one says who answers. */
function sideOfLast({ queue }: KernelState, { agent }: NextOptions): Side {
  return queue.at(-1)?.role === 'assistant' && agent.b ? 'b' : 'a'
}

function inSession(state: KernelState, session: Session, options: NextOptions): Action {
  const { turn } = session
  if (!turn) return { type: 'begin_session', side: 'a' }
  const side = sideOf(options.agent, turn)
  const step = turn.step
  if (step?.entry === undefined) return beforeStep(state, session, side, options)
  const entry = state.entries[step.entry]!
  const open = openCalls(state)
  if (open.some((call) => !isWaiting(state, call))) return { type: 'run_calls', side, entry }
  if (open.length > 0) return park(nextTime(state))
  const { agent, limits } = options
  const decision = decideStep({ state, session, agent, side, entry, limits })
  return { type: 'end_step', side, decision }
}

export function sideOf(agent: ResolvedAgent, { side }: Pick<Turn, 'side'>): ResolvedSide {
  return side === 'b' && agent.b ? agent.b : agent.a
}

/** Whether the call waits for an answer that has not come. */
export function isWaiting({ interrupts }: KernelState, { interruptId }: CallState): boolean {
  return interruptId !== undefined && interrupts.get(interruptId)?.answer === undefined
}

function beforeStep(
  state: KernelState,
  session: Session,
  side: ResolvedSide,
  { now, limits }: NextOptions,
): Action {
  if (waitsForImmediate(state)) return park(nextTime(state))
  const retryAt = session.turn?.step?.retryAt
  if (retryAt !== undefined && Date.parse(retryAt) > now) {
    const other = nextTime(state)
    return park(other === null ? Date.parse(retryAt) : Math.min(other, Date.parse(retryAt)))
  }
  const steps = session.steps[side.side]
  const max = Number.isFinite(side.maxSteps) ? side.maxSteps : limits.maxSteps
  if (steps < max) return { type: 'infer', side }
  const message = `${side.label} took ${steps} steps in this session, as many as it may.`
  const decision = {
    outcome: 'failed',
    reason: 'max_side_steps',
    message,
    attachments: [],
  } as const
  return { type: 'end_step', side, decision: { type: 'end_session', ...decision } }
}

/** The next effect, expiry or retry. */
export function nextTime({ effects, interrupts }: KernelState): number | null {
  let first = Infinity
  for (const { runAt } of effects.values()) first = Math.min(first, Date.parse(runAt))
  for (const { answer, expiresAt } of interrupts.values())
    if (!answer && expiresAt !== undefined) first = Math.min(first, Date.parse(expiresAt))
  return first === Infinity ? null : first
}
