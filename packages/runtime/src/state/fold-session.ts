import type { TokenUsage } from '@skein/ai'
import type { RuntimeEvent } from '../contract/event.ts'
import {
  type EndedSession,
  isAwaited,
  type KernelState,
  NOTHING_SPENT,
  type Session,
  spentBy,
} from './kernel-state.ts'
import { addCost } from './usage-sums.ts'

type SessionEvent = Extract<
  RuntimeEvent,
  {
    type:
      | 'session_start'
      | 'session_end'
      | 'session_failing'
      | 'session_stop_requested'
      | 'delivery_changed'
      | 'turn_start'
      | 'turn_end'
      | 'step_start'
      | 'step_end'
      | 'step_failed'
      | 'agent_handoff'
      | 'immediate_done'
      | 'stop_requested'
      | 'turn_cut'
      | 'resume_requested'
      | 'thread_terminated'
      | 'context_compacted'
      | 'inference_recorded'
  }
>

/** Applies events about sessions, turns and steps to the state. */
export function foldSession(state: KernelState, event: SessionEvent): void {
  switch (event.type) {
    case 'session_start':
      return startSession(state, event)
    case 'session_end': {
      const { sessionId: id, outcome, reason, message, hint, attachments = [], data } = event
      const firstEntry = state.session?.firstEntry ?? state.entries.length
      const { seq } = state
      const handedOn = handOn(state.session)
      const end = { id, outcome, reason, message, hint, attachments, data, firstEntry, seq }
      state.lastSession = { ...end, handedOn, trace: state.session?.trace }
      state.session = undefined
      state.isToldAwaiting = false // the end is reported to the parent, too
      state.effectsYield = false
      state.stop = outcome === 'stopped' ? 'stopped' : 'none'
      return
    }
    case 'session_failing':
      if (state.session) state.session.failing = event
      return
    case 'session_stop_requested':
      if (state.session) state.session.stopRequest = event
      return
    case 'delivery_changed':
      for (const id of event.messageIds) {
        const entry = state.entries[placeOf(state, id)]
        if (!entry) continue
        entry.delivery = event.delivery
        entry.refusal = event.reason
        state.session?.pending.delete(id)
        // Models see that an answer was refused.
        if (event.delivery === 'refused') state.shownSeq = state.seq
      }
      return
    case 'turn_start':
      if (state.session)
        state.session.turn = {
          id: event.turnId,
          side: event.side,
          startedAt: event.at,
          step: undefined,
          inferences: [],
        }
      state.nextSide = event.side
      return
    case 'turn_end':
      if (!state.session) return
      state.session.turn = undefined
      if (event.outcome !== 'completed') return
      state.session.turns++
      state.nextSide = state.nextSide === 'a' ? 'b' : 'a'
      return
    case 'step_start':
    case 'step_end':
    case 'step_failed':
      return foldStep(state, event)
    case 'inference_recorded': {
      const { session, usage } = state
      if (!session?.turn) return
      session.turn.inferences.push(event)
      if (!event.message) return // the `message_added` event of the answer counts usage and step
      const {
        inputTokens = 0,
        outputTokens = 0,
        cacheReadTokens = 0,
      } = event.usage as Partial<TokenUsage>
      usage.tokens += inputTokens + outputTokens
      usage.outputTokens += outputTokens
      usage.cachedTokens += cacheReadTokens
      addCost(usage, event.costUsd)
      session.steps[event.side]++
      const { step } = session.turn
      if (step) Object.assign(step, { failures: 0, retry: undefined })
      return
    }
    case 'agent_handoff': {
      const agent = agentOf(event.toAgentId)
      // Each time that another agent gets the thread, its children that start by themselves are created.
      if (agent !== state.agent) state.immediateFor = undefined
      state.agent = agent
      return
    }
    case 'immediate_done':
      state.immediateFor = event.agent
      return
    case 'stop_requested':
      state.stopSeq = state.seq
      if (state.session && event.leavesWrites) state.session.leavesWrites = true
      if (state.session) state.stop = event.afterStep ? 'after_step' : 'requested'
      else if (isAwaited(state)) state.stop = 'requested'
      else if (state.queue.length > 0) state.stop = 'stopped'
      return
    case 'turn_cut':
      return cutTurn(state, event)
    case 'resume_requested':
      state.resume = { side: event.side }
      if (state.stop === 'stopped') state.stop = 'none'
      return
    case 'thread_terminated':
      state.terminated = { at: event.at, isDetached: event.isDetached === true }
      // The store has closed all questions of the thread. The next work on it asks those again that stay open.
      for (const open of state.interrupts.values()) open.isDropped = open.isDetached && !open.answer
      return
    case 'context_compacted': {
      const { side, upTo, summary } = event
      const last = state.compacted[side]
      const isEarlier = last && placeOf(state, last.upTo) < (state.session?.firstEntry ?? Infinity)
      const before = isEarlier ? last : last?.before
      state.compacted[side] = { upTo, summary, seq: state.seq, before }
      return
    }
  }
}

/** Applies the early end of a turn. A summary that contains messages dropped by a restart is no longer used. */
function cutTurn(
  state: KernelState,
  { dropped = [], noted }: Extract<SessionEvent, { type: 'turn_cut' }>,
): void {
  const { session, compacted, entries } = state
  if (session) Object.assign(session, { sameErrors: 0, lastError: undefined })
  if (state.stop === 'after_step') state.stop = 'none'
  const places = dropped.map((id) => placeOf(state, id)).filter((place) => place >= 0)
  for (const place of places) {
    const entry = entries[place]!
    entry.dropped = entry.message.id === noted ? 'noted' : 'gone'
  }
  if (places.length > 0) state.shownSeq = state.seq
  const first = Math.min(...places)
  for (const side of ['a', 'b'] as const) {
    const last = compacted[side]
    if (last && placeOf(state, last.upTo) >= first) compacted[side] = last.before
  }
}

function placeOf({ places }: KernelState, messageId: string): number {
  return places.get(messageId) ?? -1
}

function startSession(
  state: KernelState,
  event: Extract<SessionEvent, { type: 'session_start' }>,
): void {
  const { lastSession, entries } = state
  const isHandoff = lastSession?.reason === 'handoff'
  const { before, sameErrors, lastError, callers, leavesWrites } = (isHandoff &&
    lastSession.handedOn) || {
    before: NOTHING_SPENT,
    sameErrors: 0,
    lastError: undefined,
    callers: [],
    leavesWrites: false,
  }
  state.session = {
    id: event.sessionId,
    agent: event.agent,
    definitions: event.definitions,
    startedAt: event.at,
    // After a handoff the session continues with the messages that the previous session was asked to answer.
    firstEntry: isHandoff ? lastSession.firstEntry : entries.length,
    waiters: [...(event.waiters ?? [])],
    callers,
    failing: undefined,
    leavesWrites,
    isGoverned: false,
    pending: new Set(),
    stopRequest: undefined,
    turn: undefined,
    turns: 0,
    steps: { a: 0, b: 0 },
    before,
    sameErrors,
    lastError,
    trace: event.trace,
  }
  if (state.stop !== 'requested') state.stop = 'none'
  state.resume = undefined
}

/** Returns the counts that a session passes on to the session that follows it after a handoff. */
function handOn(session: Session | undefined): EndedSession['handedOn'] {
  if (!session)
    return {
      before: NOTHING_SPENT,
      sameErrors: 0,
      lastError: undefined,
      callers: [],
      leavesWrites: false,
    }
  const { before, agent, sameErrors, lastError, callers, leavesWrites } = session
  const handoffs = before.handoffs + 1
  const byAgent = { ...before.byAgent, [agent]: spentBy(session) }
  return { before: { handoffs, byAgent }, sameErrors, lastError, callers, leavesWrites }
}

function foldStep(
  state: KernelState,
  event: Extract<SessionEvent, { type: 'step_start' | 'step_end' | 'step_failed' }>,
): void {
  const turn = state.session?.turn
  if (!turn) return
  if (event.type === 'step_end') {
    turn.step = undefined
    return
  }
  if (event.type === 'step_failed') {
    if (!turn.step) return
    turn.step.failures = event.attempt
    turn.step.retry =
      event.retryAt === undefined ? undefined : { at: event.retryAt, reason: event.message }
    turn.step.epoch = undefined
    return
  }
  const { stepId: id, attempt, epoch } = event
  if (turn.step?.id === id) {
    turn.step.attempt = attempt
    turn.step.epoch = epoch
    turn.step.retry = undefined
    return
  }
  turn.step = { id, attempt, epoch, entry: undefined, retry: undefined, failures: 0 }
}

/** Returns the agent's name from `<agent>/<side>`. */
function agentOf(agentId: string): string {
  return agentId.slice(0, agentId.lastIndexOf('/'))
}
