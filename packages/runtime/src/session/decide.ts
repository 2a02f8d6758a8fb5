import { isPlainObject, type JsonValue } from '@skein/base'
import type { ResolvedAgent, ResolvedBinding, ResolvedSide } from '../definitions/resolved.ts'
import type { RuntimeLimits } from '../context.ts'
import type { CallState, Entry, KernelState, Session } from '../state.ts'

/** What follows from a finished step. */
export type StepDecision =
  | {
      readonly type: 'end_session'
      readonly outcome: 'completed' | 'failed'
      readonly reason: string
      readonly message: string
      readonly attachments: readonly string[]
    }
  | { readonly type: 'handoff'; readonly agent: string; readonly toolCallId: string }
  /** The side's turn is over; `text` is what it said. */
  | { readonly type: 'yield'; readonly reason: 'response' | 'stop_tool'; readonly text: string }
  /** The side goes on; `nudge` is told to it when it did not call a tool. */
  | { readonly type: 'continue'; readonly nudge?: string }

export interface StepFacts {
  readonly state: KernelState
  readonly session: Session
  readonly agent: ResolvedAgent
  readonly side: ResolvedSide
  readonly entry: Entry
  readonly limits: RuntimeLimits
}

/** The order of §5: session bindings, then the stop tool, then the response, then the limits. */
export function decideStep(facts: StepFacts): StepDecision {
  return (
    sessionBinding(facts) ??
    stopTool(facts) ??
    handoff(facts) ??
    response(facts) ??
    limit(facts) ?? { type: 'continue', ...nudge(facts) }
  )
}

/** Failure is examined first, and only a call that succeeded counts. */
function sessionBinding({ session, side, entry }: StepFacts): StepDecision | undefined {
  const { stopRequest } = session
  if (stopRequest)
    return {
      type: 'end_session',
      outcome: stopRequest.isFailure ? 'failed' : 'completed',
      reason: 'stop_session',
      message: stopRequest.message,
      attachments: stopRequest.attachments ?? [],
    }
  return (
    boundEnd(entry, side.sessionFail, { outcome: 'failed', reason: 'session_fail' }) ??
    boundEnd(entry, side.sessionStop, { outcome: 'completed', reason: 'session_stop' })
  )
}

function boundEnd(
  { calls }: Entry,
  binding: ResolvedBinding | undefined,
  end: { readonly outcome: 'completed' | 'failed'; readonly reason: string },
): StepDecision | undefined {
  const call = binding && calls.find((one) => one.call.toolName === binding.name && isDone(one))
  if (!call || !binding) return undefined
  return {
    type: 'end_session',
    ...end,
    message: boundMessage(call, binding),
    attachments: boundAttachments(call, binding),
  }
}

function isDone({ outcome }: CallState): boolean {
  return outcome?.type === 'done'
}

/** The mapped argument, else what the tool answered. */
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

/** The mapped paths: one or many. Anything else is none. */
export function boundAttachments(
  { call }: Pick<CallState, 'call'>,
  { attachmentsProperty }: ResolvedBinding,
): readonly string[] {
  if (attachmentsProperty === undefined) return []
  const value = call.arguments[attachmentsProperty]
  const paths: readonly unknown[] = Array.isArray(value) ? value : [value]
  return paths.filter((path) => typeof path === 'string' && path !== '') as string[]
}

/** Text stays, anything else is JSON. */
export function toText(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? '')
}

function stopTool({ side, entry }: StepFacts): StepDecision | undefined {
  if (side.stopTool === undefined) return undefined
  const call = entry.calls.find((one) => one.call.toolName === side.stopTool)
  if (!call) return undefined
  return { type: 'yield', reason: 'stop_tool', text: stopText(call, side) ?? textOf(entry) }
}

/** The property of the arguments, else of a JSON result. */
export function stopText({ call, outcome }: CallState, side: ResolvedSide): string | undefined {
  const property = side.stopToolResponseProperty
  if (property === undefined) return undefined
  const given = call.arguments[property]
  if (given !== undefined) return toText(given)
  const result = outcome?.type === 'done' ? parsed(outcome.result) : undefined
  const found = isPlainObject(result) ? result[property] : undefined
  return found === undefined ? undefined : toText(found)
}

function parsed(result: unknown): unknown {
  if (typeof result !== 'string') return result
  try {
    return JSON.parse(result) as JsonValue
  } catch {
    return undefined // plain words have no properties
  }
}

function handoff({ side, entry }: StepFacts): StepDecision | undefined {
  for (const one of entry.calls) {
    if (!isDone(one)) continue
    const tool = side.prompt.tools.find(({ name }) => name === one.call.toolName)
    if (tool?.kind === 'handoff')
      return { type: 'handoff', agent: tool.agent, toolCallId: one.call.toolCallId }
  }
  return undefined
}

function response({ side, entry }: StepFacts): StepDecision | undefined {
  const text = textOf(entry)
  if (text.trim() === '' || lacksCall(side, entry)) return undefined
  if (side.stopOnResponse)
    return entry.calls.length === 0 ? { type: 'yield', reason: 'response', text } : undefined
  // A side without any stop rule hands over whatever it says; else nobody would ever hear it.
  return side.stopTool === undefined ? { type: 'yield', reason: 'response', text } : undefined
}

/** Whether the prompt wants a call and there is none. */
function lacksCall({ prompt }: ResolvedSide, entry: Entry | undefined): boolean {
  return prompt.definition.toolChoice === 'required' && entry?.calls.length === 0
}

function limit({ state, session, side, limits, entry }: StepFacts): StepDecision | undefined {
  const steps = session.steps[side.side]
  if (steps >= (Number.isFinite(side.maxSteps) ? side.maxSteps : limits.maxSteps))
    return failed('max_side_steps', `${side.label} took ${steps} steps without ending its turn.`)
  if (session.sameErrors >= limits.sameErrors)
    return failed(
      'repeated_tool_error',
      `The same tool error came ${session.sameErrors} times: ${session.lastError ?? ''}`,
    )
  if (isEmpty(entry) && isEmpty(answerBefore(state, session)))
    return failed('empty_response', `${side.label} answered with nothing twice.`)
  if (lacksCall(side, entry) && lacksCall(side, answerBefore(state, session)))
    return failed('tool_required', `${side.label} has to call a tool and did not, twice.`)
  return undefined
}

/** The answer of the step before this one, in the same session. */
function answerBefore({ entries }: KernelState, session: Session): Entry | undefined {
  const last = session.turn?.step?.entry ?? entries.length
  for (let place = last - 1; place >= session.firstEntry; place--)
    if (entries[place]!.stepId !== undefined) return entries[place]
  return undefined
}

function failed(reason: string, message: string): StepDecision {
  return { type: 'end_session', outcome: 'failed', reason, message, attachments: [] }
}

/** A model that is asked again after its own words needs a line to answer to. */
function nudge({ side, entry }: StepFacts): { readonly nudge?: string } {
  if (entry.calls.length > 0) return {}
  if (isEmpty(entry)) return { nudge: 'The last reply was empty. Answer, or call a tool.' }
  if (lacksCall(side, entry)) return { nudge: 'Answer by calling a tool.' }
  return { nudge: `Go on. Call ${side.stopTool ?? 'a tool'} when you are done.` }
}

function isEmpty(entry: Entry | undefined): boolean {
  return entry !== undefined && entry.calls.length === 0 && textOf(entry).trim() === ''
}

export function textOf({ message }: Entry): string {
  return message.type === 'tool_result' ? '' : message.text
}
