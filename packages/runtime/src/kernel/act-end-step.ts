import { agentRegistrations } from '../services/agent-registrations.ts'
import type { ResolvedSide } from '../definitions/resolved.ts'
import type { RuntimeEvent } from '../event.ts'
import { textOf, type StepDecision } from './decide.ts'
import { deliverOf, endGoverned, notDelivered } from './deliver.ts'
import type { DrainContext } from './drain-context.ts'
import { endSession } from './end-session.ts'
import { noteMessage } from './queue.ts'
import { readOutput } from './read-output.ts'
import type { Turn } from './state.ts'
import { stepStart } from './step-start.ts'
import { stepEnd, turnEnd, turnStart } from './turn-events.ts'

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
