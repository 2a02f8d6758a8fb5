import type { DrainContext } from '../context/drain-context.ts'
import { checksAnswers, type ResolvedSide } from '../definitions/resolved.ts'
import { agentRegistrations, type RuntimeEvent } from '../contract/event.ts'
import { endSession, notDelivered, type SessionEnding } from '../session/end-session.ts'
import {
  judged,
  noteMessage,
  stepEnd,
  stepStart,
  turnEnd,
  turnStart,
} from '../session/turn-events.ts'
import { messageText, type StepDecision } from '../state/step-decision.ts'
import { settleLateCalls } from '../session/late.ts'
import { type KernelState, spentBy } from '../state/kernel-state.ts'
import type { JsonValue } from '@skein/base'

/** Carries out the decision about a finished step and commits it. */
export async function endStep(
  context: DrainContext,
  side: ResolvedSide,
  decision: StepDecision,
): Promise<void> {
  if (context.state.stop === 'after_step' && decision.type !== 'end_session')
    return endSession(context, { outcome: 'stopped', reason: 'stopped', message: '' })
  switch (decision.type) {
    case 'continue': {
      const events: RuntimeEvent[] = stepEnd(context)
      if (decision.nudge !== undefined) events.push(noteMessage(context, decision.nudge, 'nudge'))
      const turn = context.state.session?.turn
      if (turn) events.push(stepStart(context, { turnId: turn.id, side: turn.side }))
      return context.commit('step_end', { kind: 'outcome', events })
    }
    case 'handoff':
      return handOff(context, side, decision.agent)
    case 'yield':
      return yieldTurn(context, side, decision)
    case 'end_session':
      return endGoverned(context, decision)
  }
}

/**
 * Ends the turn of one side of the conversation. If the other side is a model too, its turn begins, unless this
 * side is configured to end the session (`sessionStopOnResponse`); if it is a person, the session ends.
 */
async function yieldTurn(
  context: DrainContext,
  side: ResolvedSide,
  { reason, text }: Extract<StepDecision, { type: 'yield' }>,
): Promise<void> {
  const { agent, state } = context
  const output = reason === 'response' ? await readOutput(side, text) : undefined
  if (output && 'problem' in output) return refuseOutput(context, side, output.problem)
  const isComposed = reason === 'stop_tool' || side.agent !== undefined
  const spoken = isComposed ? composedMessage(context, text) : []
  const end = { reason, message: text, spoken, isTurnOver: true, data: output?.data } as const
  if (agent.type !== 'dual_ai' || side.sessionStopOnResponse)
    return endGoverned(context, { ...end, outcome: 'completed' })
  const turns = (state.session ? spentBy(state.session).turns : 0) + 1
  if (turns >= agent.maxSessionTurns) {
    const message = `The session took ${turns} turns, as many as it may.`
    const limit = { outcome: 'failed', reason: 'max_session_turns', message } as const
    return endGoverned(context, { ...end, ...limit })
  }
  const events = [
    ...spoken,
    ...stepEnd(context),
    ...turnEnd(context, 'completed', reason),
    ...turnStart(context, side.side === 'a' ? 'b' : 'a'),
  ]
  await context.commit('turn_end', { kind: 'outcome', events })
}

/**
 * Asks the model again when its answer has the wrong shape. The third such answer in a session ends the
 * session as failed.
 */
async function refuseOutput(
  context: DrainContext,
  side: ResolvedSide,
  problem: string,
): Promise<void> {
  const { state } = context
  const notes = state.entries
    .slice(state.session?.firstEntry)
    .filter(({ dropped }) => !dropped)
    .filter(({ metadata }) => metadata?.['kind'] === 'output' && metadata['for'] === side.side)
  if (notes.length >= 2) {
    const message = `${side.label} did not answer in the shape that was asked for: ${problem}.`
    return endSession(context, { outcome: 'failed', reason: 'invalid_output', message })
  }
  const note = `Your answer does not have the shape that was asked for: ${problem}. Answer again, with the JSON alone.`
  const events = [...stepEnd(context), noteMessage(context, note, 'output')]
  await context.commit('output_refused', { kind: 'outcome', events })
}

/**
 * Returns the final text of a stop tool or a strategy as a message of the side whose turn it is; an empty list if
 * the model's own message has the same text.
 */
function composedMessage(context: DrainContext, text: string): RuntimeEvent[] {
  const { environment, agent, state } = context
  const turn = state.session?.turn
  const entry = turn?.step?.entry === undefined ? undefined : state.entries[turn.step.entry]
  if (!turn || text === '' || (entry && messageText(entry) === text)) return []
  const at = context.at()
  const id = environment.ids()
  return [
    {
      type: 'message_added',
      at,
      turnId: turn.id,
      message: { id, type: 'assistant', timestamp: at, content: [{ type: 'text', text }] },
      side: turn.side,
      agentId: `${agent.name}/${turn.side}`,
      delivery: checksAnswers(agent) ? 'pending' : undefined,
    },
  ]
}

/**
 * Hands the thread to another agent. The history stays, and the turn of the new agent's side A begins
 * at once.
 */
async function handOff(context: DrainContext, side: ResolvedSide, to: string): Promise<void> {
  const { environment, agent, state } = context
  const { session } = state
  const turn = session?.turn
  if (!session || !turn || !(await passesGate(context, ''))) return
  const at = context.at()
  const toAgentId = `${to}/a`
  const next = environment.registry.agent(to)
  const fromAgentId = `${agent.name}/${side.side}`
  const events: RuntimeEvent[] = [
    ...stepEnd(context),
    ...turnEnd(context, 'completed', 'handoff'),
    ...judged(context, 'delivered'),
    { type: 'session_end', at, sessionId: session.id, outcome: 'completed', reason: 'handoff' },
    { type: 'agent_handoff', at, turnId: turn.id, fromAgentId, toAgentId },
    ...agentRegistrations(next, at),
    {
      type: 'session_start',
      at,
      sessionId: environment.ids(),
      agent: to,
      definitions: next.hash,
      waiters: session.waiters,
    },
    { type: 'turn_start', at, turnId: environment.ids(), agentId: toAgentId, side: 'a' },
  ]
  await context.commit('handoff', { kind: 'outcome', events, head: { agent: to } })
  context.dropGovernor()
}

/** Ends the session. If it is completed, the governor (policies, checks) must first allow to deliver its result. */
async function endGoverned(context: DrainContext, ending: SessionEnding): Promise<void> {
  if (ending.outcome !== 'completed' || (await passesGate(context, ending.message)))
    return endSession(context, ending)
}

/**
 * Whether the governor (UAICP) allows the result to be delivered. If not, this function commits the
 * consequence: the model gets the reasons and tries again, or the session fails. The governor is not asked
 * if the agent has no conditions for delivery (`taskClass`) and the session ran no governed tool.
 */
async function passesGate(context: DrainContext, candidate: JsonValue): Promise<boolean> {
  const { agent, state } = context
  if (!agent.definition.taskClass && !state.session?.isGoverned) return true
  await settleLateCalls(context)
  const delivery = await (await context.governor()).deliver(candidate)
  if (delivery.type === 'delivered') return true
  if (delivery.type === 'failing') {
    const message = notDelivered(delivery.reasons)
    await endSession(context, { outcome: 'failed', reason: 'fail_safe', message })
    return false
  }
  const text = delivery.why
    .map(({ code, detail }) => (detail === undefined ? code : `${code} (${detail})`))
    .join(', ')
  const undone = delivery.undo.filter(({ status }) => status === 'done').map(({ tool }) => tool)
  const undoneText = undone.length > 0 ? ` These calls were undone: ${undone.join(', ')}.` : ''
  const note = `Your answer was not delivered: ${text}.${undoneText} Correct this and answer again.`
  const refusals = judged(context, 'refused', { reason: text, ids: answerOfStep(state) })
  const events = [...refusals, ...stepEnd(context), noteMessage(context, note, 'gate')]
  await context.commit('repair', { kind: 'outcome', events })
  return false
}

/** Returns the answer of the running step, if the gate has not judged it. What was said before it waits for the end. */
function answerOfStep({ session, entries }: KernelState): readonly string[] {
  const id = entries[session?.turn?.step?.entry ?? -1]?.message.id
  return id !== undefined && session?.pending.has(id) ? [id] : []
}

/** The parsed answer, or a description of why it does not have the declared shape. */
type SessionOutput = { readonly data: JsonValue } | { readonly problem: string }

/** Parses an answer according to the output that the prompt declares. Returns undefined when it declares none. */
async function readOutput(
  { prompt }: ResolvedSide,
  text: string,
): Promise<SessionOutput | undefined> {
  const { output } = prompt.definition
  if (!output) return undefined
  let data: JsonValue
  try {
    data = JSON.parse(text) as JsonValue
  } catch {
    return { problem: 'it is not JSON' }
  }
  const validation = await output['~standard'].validate(data)
  if (!validation.issues) return { data }
  const issues = validation.issues.map(({ message, path = [] }) => {
    const keys = path.map((part) => String(typeof part === 'object' ? part.key : part))
    return keys.length > 0 ? `${keys.join('.')}: ${message}` : message
  })
  return { problem: issues.join('; ') }
}
