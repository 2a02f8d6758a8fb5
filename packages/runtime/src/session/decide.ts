import { isPlainObject } from '@skein/base'
import type { ResolvedAgent, ResolvedBinding, ResolvedSide } from '../definitions/resolved.ts'
import type { RuntimeLimits } from '../contract/context.ts'
import type { CallState, Entry, KernelState, Session } from '../contract/state.ts'

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
  /** The side's turn is over; `text` is its answer. */
  | { readonly type: 'yield'; readonly reason: 'response' | 'stop_tool'; readonly text: string }
  /** The side takes another step. `nudge` is a note for a side that did not call a tool. */
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
 * Decides what happens after a finished step, in the order of Standard Agents §5: a tool that asked to end
 * the session, the bound session tools (failure first, and only calls that succeeded), the stop tool, a
 * handoff, the response, the limits.
 */
export function decideStep(facts: StepFacts): StepDecision {
  const ended = endByTool(facts)
  if (ended) return ended
  const { side, entry } = facts
  for (const { call, outcome } of entry.calls) {
    const tool = side.prompt.tools.find(({ name }) => name === call.toolName)
    if (tool?.kind === 'handoff' && outcome?.type === 'done')
      return { type: 'handoff', agent: tool.agent, toolCallId: call.toolCallId }
  }
  const text = messageText(entry)
  if (text.trim() !== '' && !lacksCall(side, entry)) {
    // A side without any stop rule ends its turn with any text; otherwise its turn would never end.
    const isOver = side.stopOnResponse ? entry.calls.length === 0 : side.stopTool === undefined
    if (isOver) return { type: 'yield', reason: 'response', text }
  }
  return limit(facts) ?? { type: 'continue', nudge: nudge(facts) }
}

/**
 * Returns the decision when a tool ends the turn or the session: a tool that asked for it, a bound session
 * tool, or the stop tool. For a side that is an `agent()`, only these can end the turn early; otherwise its
 * strategy decides when the turn is over.
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
  const done = entry.calls.filter(({ outcome }) => outcome?.type === 'done')
  for (const [binding, outcome, reason] of [
    [side.sessionFail, 'failed', 'session_fail'],
    [side.sessionStop, 'completed', 'session_stop'],
  ] as const) {
    const call = binding && done.find((one) => one.call.toolName === binding.name)
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

/** Returns the message of a bound session tool: the mapped argument, else the result of the tool. */
export function boundMessage(
  { call, outcome }: Pick<CallState, 'call' | 'outcome'>,
  binding: ResolvedBinding,
): string {
  const { messageProperty } = binding
  if (messageProperty !== undefined) {
    const value = call.arguments[messageProperty]
    return value === undefined ? '' : toText(value)
  }
  return outcome?.type === 'done' ? toText(outcome.result) : ''
}

/** Returns the file paths in the mapped argument, which is one path or a list. Other values are ignored. */
export function boundAttachments(
  { call }: Pick<CallState, 'call'>,
  { attachmentsProperty }: ResolvedBinding,
): readonly string[] {
  if (attachmentsProperty === undefined) return []
  const value = call.arguments[attachmentsProperty]
  const paths: readonly unknown[] = Array.isArray(value) ? value : [value]
  return paths.filter((path) => typeof path === 'string' && path !== '') as string[]
}

/** Converts a value to text: a string stays as it is, anything else becomes JSON. */
export function toText(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? '')
}

/** Returns the text of a stop tool: the configured property of its arguments, else of its JSON result. */
export function stopText({ call, outcome }: CallState, side: ResolvedSide): string | undefined {
  const property = side.stopToolResponseProperty
  if (property === undefined) return undefined
  const given = call.arguments[property]
  if (given !== undefined) return toText(given)
  let result: unknown = outcome?.type === 'done' ? outcome.result : undefined
  if (typeof result === 'string')
    try {
      result = JSON.parse(result)
    } catch {
      return undefined // a result that is not JSON has no properties
    }
  const found = isPlainObject(result) ? result[property] : undefined
  return found === undefined ? undefined : toText(found)
}

/** Whether the prompt requires a tool call and the answer contains none. */
function lacksCall({ prompt }: ResolvedSide, entry: Entry | undefined): boolean {
  return prompt.definition.toolChoice === 'required' && entry?.calls.length === 0
}

function limit(facts: StepFacts): StepDecision | undefined {
  const { state, session, side, entry } = facts
  const reached = limitOf(facts)
  if (reached) return reached
  if (isEmpty(entry) && isEmpty(answerBefore(state, session)))
    return failed('empty_response', `${side.label} answered with nothing twice.`)
  if (lacksCall(side, entry) && lacksCall(side, answerBefore(state, session)))
    return failed('tool_required', `${side.label} has to call a tool and did not, twice.`)
  return undefined
}

/** Returns the failure when a side may take no further step in this session; undefined when it may. */
export function limitOf({
  session,
  side,
  limits,
}: Pick<StepFacts, 'session' | 'side' | 'limits'>): StepDecision | undefined {
  const steps = session.steps[side.side]
  if (steps >= (Number.isFinite(side.maxSteps) ? side.maxSteps : limits.maxSteps))
    return failed('max_side_steps', `${side.label} took ${steps} steps without ending its turn.`)
  if (session.sameErrors >= limits.sameErrors)
    return failed(
      'repeated_tool_error',
      `The same tool error came ${session.sameErrors} times: ${session.lastError ?? ''}`,
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
 * Returns a note for the model, because a model that is asked again after its own message needs a message to
 * answer. Returns undefined if that message has calls, because their results follow it.
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

/** Returns the text of an entry; empty for results of calls. */
export function messageText({ message }: Entry): string {
  return message.type === 'tool_result' ? '' : message.text
}
