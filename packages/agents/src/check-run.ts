import { isPlainObject } from '@skein/base'
import { isMessage, isUserMessage, messageFromJSON, UserMessage, type Message } from '@skein/ai'
import { invalidRequest } from './agent-error.ts'
import type { GenerateResult } from './agent.ts'
import type { AgentTask, InternalRunOptions } from './run-agent.ts'
import type { Interrupt } from './interrupt.ts'
import type { AgentState } from './state.ts'

export function checkState(state: unknown): AgentState {
  if (isState(state)) return state
  throw invalidRequest(
    'An agent needs a state to work from.',
    'Pass AgentState.initial(), the state of an earlier result, or AgentState.fromJSON(…).',
  )
}

/** By shape, so that another copy of this package counts too. */
function isState(value: unknown): value is AgentState {
  return (
    typeof value === 'object' &&
    value !== null &&
    'withMessages' in value &&
    typeof value.withMessages === 'function'
  )
}

/** A resumed run has no input of its own; what was asked last stands in its place. */
export function toInput({ core, input, resume }: AgentTask, state: AgentState): Message {
  const { ids, clock } = core
  const sources = { ids, ...(clock && { clock }) }
  if (resume) return state.messages.findLast(isAsked) ?? new UserMessage('', sources)
  if (typeof input === 'string') return new UserMessage(input, sources)
  if (isMessage(input)) return 'text' in input ? input : messageFromJSON(input)
  throw invalidRequest('An agent’s input is a text or a message.')
}

function isAsked(message: Message): boolean {
  return isUserMessage(message) && message.metadata?.['uap']?.['synthetic'] !== true
}

/** UAP §3.4: the state knows its session; with a store also its agent (A66). */
export function withSession(
  state: AgentState,
  sessionId: string | undefined,
  agentId: string | undefined,
): AgentState {
  let next = state
  if (sessionId !== undefined && next.metadata['sessionId'] !== sessionId)
    next = next.withMetadata('sessionId', sessionId)
  if (agentId !== undefined && next.metadata['agentId'] !== agentId)
    next = next.withMetadata('agentId', agentId)
  return next
}

export function checkResult(
  result: GenerateResult,
  strategy: string,
  sessionId: string | undefined,
  agentId: string | undefined,
): GenerateResult {
  if (!isState(result?.state) || !isPlainObject(result.turn))
    throw invalidRequest(`The strategy "${strategy}" gave no { turn, state }.`)
  const state = withSession(result.state, sessionId, agentId)
  return state === result.state ? result : { ...result, state }
}

/** A tool that runs an agent by hand would swallow what waits inside. */
export function checkInterrupts(
  { interrupts }: GenerateResult,
  { parentContext, takesInterrupts }: InternalRunOptions,
): void {
  if (!interrupts || !parentContext || takesInterrupts) return
  throw waitsInside(interrupts)
}

export function waitsInside(interrupts: readonly Interrupt[]): Error {
  const ids = interrupts.map(({ id }) => id).join(', ')
  return invalidRequest(
    `A call of this run waits for an answer (${ids}), but nobody would pass it on.`,
    'Use generate() and resume(); inside a tool, run the agent with subagent(), which passes interrupts on.',
  )
}
