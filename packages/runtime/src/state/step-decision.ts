import { isPlainObject } from '@skein/base'
import type { ResolvedAgent, ResolvedBinding, ResolvedSide } from '../definitions/resolved.ts'
import type { RuntimeLimits } from '../contract/limits.ts'
import {
  type CallState,
  type Entry,
  type KernelState,
  type Session,
  spentBy,
} from './kernel-state.ts'
import { argumentsToRun } from './calls.ts'

/** The decision about what happens after a finished step. */
export type StepDecision =
  | {
      readonly type: 'end_session'
      readonly outcome: 'completed' | 'failed'
      readonly reason: string
      readonly message: string
      readonly attachments: readonly string[]
    }
  | { readonly type: 'handoff'; readonly agent: string; readonly toolCallId: string }
  /** The turn of this side of the conversation (A or B) is over; `text` is its answer. */
  | { readonly type: 'yield'; readonly reason: 'response' | 'stop_tool'; readonly text: string }
  /** The same side takes another step. `nudge` is a note to a model that was expected to call a tool and did not. */
  | { readonly type: 'continue'; readonly nudge?: string }

/** The inputs of `decideStep`. */
export interface StepFacts {
  readonly state: KernelState
  readonly session: Session
  readonly agent: ResolvedAgent
  readonly side: ResolvedSide
  readonly entry: Entry
  readonly limits: RuntimeLimits
}

/**
 * Decides what happens after a finished step, in the order of Standard Agents §5: a tool asked to end
 * the session; a tool that the agent declares as end of the session was called successfully (failure
 * first); the stop tool; a handoff to another agent; the response; the limits.
 */
export function decideStep(facts: StepFacts): StepDecision {
  const end = endByTool(facts)
  if (end) return end
  const { side, entry } = facts
  for (const { call, outcome } of entry.calls) {
    const tool = side.prompt.tools.find(({ name }) => name === call.toolName)
    if (tool?.kind === 'handoff' && outcome?.type === 'done')
      return handoff(facts, tool.agent, call.toolCallId)
  }
  const text = messageText(entry)
  // Without a stop tool, words without calls end the turn whatever `stopOnResponse` says; otherwise it would never end.
  const mayYield = side.stopOnResponse || side.stopTool === undefined
  if (mayYield && entry.calls.length === 0 && text.trim() !== '' && !lacksCall(side, entry))
    return { type: 'yield', reason: 'response', text }
  return limit(facts) ?? { type: 'continue', nudge: nudge(facts) }
}

/**
 * Returns the decision if a tool ends the turn or the session: a tool that requested it (`stopSession`), a
 * tool that the agent declares as end of the session, or the stop tool of this side of the conversation. If the side
 * is an `agent()`, its strategy decides when the turn is over, and only these tools can end the turn earlier.
 */
export function endByTool({ session, side, entry }: StepFacts): StepDecision | undefined {
  const { stopRequest } = session
  if (stopRequest)
    return {
      type: 'end_session',
      outcome: stopRequest.isFailure ? 'failed' : 'completed',
      reason: 'stop_session',
      message: stopRequest.message,
      attachments: stopRequest.attachments ?? [],
    }
  const successes = entry.calls.filter(({ outcome }) => outcome?.type === 'done')
  for (const [binding, outcome, reason] of [
    [side.sessionFail, 'failed', 'session_fail'],
    [side.sessionStop, 'completed', 'session_stop'],
  ] as const) {
    const call = binding && successes.find((one) => one.call.toolName === binding.name)
    if (!call || !binding) continue
    const message = boundMessage(call, binding)
    const attachments = boundAttachments(call, binding)
    return { type: 'end_session', outcome, reason, message, attachments }
  }
  const stop = entry.calls.find(({ call }) => call.toolName === side.stopTool)
  if (side.stopTool !== undefined && stop)
    return { type: 'yield', reason: 'stop_tool', text: stopText(stop, side) ?? messageText(entry) }
  return undefined
}

/**
 * Returns the message of a tool that ended the session: the argument that its declaration (`binding`) names, else
 * its result.
 */
export function boundMessage(
  {
    call,
    outcome,
    parsed,
  }: Pick<CallState, 'call' | 'outcome'> & Partial<Pick<CallState, 'parsed'>>,
  binding: ResolvedBinding,
): string {
  const { messageProperty } = binding
  if (messageProperty !== undefined)
    return toText(argumentsToRun({ call, parsed })[messageProperty])
  return outcome?.type === 'done' ? toText(outcome.result) : ''
}

/** Returns the file paths (one path or a list) in the argument that the declaration of the tool (binding) names. */
export function boundAttachments(
  { call, parsed }: Pick<CallState, 'call'> & Partial<Pick<CallState, 'parsed'>>,
  { attachmentsProperty }: ResolvedBinding,
): readonly string[] {
  if (attachmentsProperty === undefined) return []
  const value = argumentsToRun({ call, parsed })[attachmentsProperty]
  const paths: readonly unknown[] = Array.isArray(value) ? value : [value]
  return paths.filter((path) => typeof path === 'string' && path !== '') as string[]
}

/** Converts a value to text: a string stays as it is, a missing value or null is empty, anything else becomes JSON. */
export function toText(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value ?? undefined) ?? '')
}

/**
 * Returns the text of a stop tool: the configured property of its arguments or, if it is missing or null, of its
 * JSON result.
 */
export function stopText(
  { call, outcome, parsed }: CallState,
  side: ResolvedSide,
): string | undefined {
  const property = side.stopToolResponseProperty
  if (property === undefined) return undefined
  const argument = argumentsToRun({ call, parsed })[property]
  if (argument !== undefined && argument !== null) return toText(argument)
  let result: unknown = outcome?.type === 'done' ? outcome.result : undefined
  if (typeof result === 'string')
    try {
      result = JSON.parse(result)
    } catch {
      return undefined // a result that is not JSON has no properties
    }
  const member = isPlainObject(result) ? result[property] : undefined
  return member === undefined || member === null ? undefined : toText(member)
}

/** Returns the handoff to another agent, or a failure if the thread was handed over too often. */
function handoff({ session, limits }: StepFacts, agent: string, toolCallId: string): StepDecision {
  const { handoffs } = session.before
  if (handoffs < limits.maxHandoffs) return { type: 'handoff', agent, toolCallId }
  const message = `The thread was handed over ${handoffs} times without a message of a person, as often as it may; "${agent}" does not get it.`
  return failed('max_handoffs', message)
}

/** Whether the prompt requires a tool call and the answer contains none. */
function lacksCall({ prompt }: ResolvedSide, entry: Entry | undefined): boolean {
  return prompt.definition.toolChoice === 'required' && entry?.calls.length === 0
}

function limit(facts: StepFacts): StepDecision | undefined {
  const { state, session, side, entry } = facts
  const limit = limitOf(facts)
  if (limit) return limit
  if (isEmpty(entry) && isEmpty(answerBefore(state, session)))
    return failed('empty_response', `${side.label} answered with nothing twice.`)
  if (lacksCall(side, entry) && lacksCall(side, answerBefore(state, session)))
    return failed('tool_required', `${side.label} has to call a tool and did not, twice.`)
  return undefined
}

/** Returns the failure if this side of the conversation may take no further step in this session, else undefined. */
export function limitOf({
  session,
  side,
  limits,
}: Pick<StepFacts, 'session' | 'side' | 'limits'>): StepDecision | undefined {
  const steps = spentBy(session)[side.side]
  if (steps >= (Number.isFinite(side.maxSteps) ? side.maxSteps : limits.maxSteps))
    return failed('max_side_steps', `${side.label} took ${steps} steps without ending its turn.`)
  if (session.sameErrors >= limits.sameErrors)
    return failed(
      'repeated_tool_error',
      `${session.sameErrors} steps in a row failed with the same tool error: ${session.lastError ?? ''}`,
    )
  return undefined
}

/** Returns the answer of the previous step of the same session. */
function answerBefore({ entries }: KernelState, session: Session): Entry | undefined {
  const last = session.turn?.step?.entry ?? entries.length
  for (let place = last - 1; place >= session.firstEntry; place--)
    if (entries[place]!.stepId !== undefined) return entries[place]
  return undefined
}

function failed(reason: string, message: string): StepDecision {
  return { type: 'end_session', outcome: 'failed', reason, message, attachments: [] }
}

/**
 * Returns a note for the model: a model that is asked again after its own message needs a message to
 * answer. Returns undefined if the model's message has calls, because then their results follow it.
 */
function nudge({ side, entry }: StepFacts): string | undefined {
  if (entry.calls.length > 0) return undefined
  if (isEmpty(entry)) return 'The last reply was empty. Answer, or call a tool.'
  if (lacksCall(side, entry)) return 'Answer by calling a tool.'
  return `Go on. Call ${side.stopTool ?? 'a tool'} when you are done.`
}

function isEmpty(entry: Entry | undefined): boolean {
  return entry !== undefined && entry.calls.length === 0 && messageText(entry).trim() === ''
}

/** Returns the text of an entry of the conversation; empty for results of calls. */
export function messageText({ message }: Entry): string {
  return message.type === 'tool_result' ? '' : message.text
}
