import { type Clock, type IdSource, isPlainObject, type JsonValue } from '@skein/base'
import {
  type BatchResult,
  type CallPorts,
  type OpenCall,
  type ToolCall,
  type ToolExecution,
  type ToolOutcome,
  ToolResultMessage,
  type Turn,
  type Warning,
} from '@skein/ai'
import { toFittingResult, toToolExecution, toToolResult } from '@skein/ai/engine'
import { invalidUse } from '../contract/agent-error.ts'
import { allInterruptsOf, interruptsOf } from '../state/interrupts.ts'
import type { Answer, Answers, DeferredCall, Interrupt } from '../state/state-types.ts'
import type { AgentState } from '../state/state.ts'

/** The result of running the calls of one message. */
export interface CallsResult {
  /** The state with the results, or suspended if calls wait. */
  readonly state: AgentState
  /** The messages added to the history, in order. */
  readonly messages: Turn['messages']
  readonly executions: readonly ToolExecution[]
  readonly warnings: readonly Warning[]
  readonly openCalls: readonly OpenCall[]
  readonly interrupts: readonly Interrupt[]
}

/** The state and the known outcomes and answers of calls before they run. */
export interface CallsInput {
  readonly state: AgentState
  /** Known outcomes by call id; those calls are not run again. */
  readonly settled?: ReadonlyMap<string, ToolOutcome>
  /** Answers to the interrupts of a suspended state. */
  readonly answers?: Answers
  /** Bytes of a result that the model is shown; of a longer one it sees the beginning and the end. */
  readonly maxToolResultBytes?: number
}

/** The open calls of one message, with the known outcome, answer or earlier request of each. */
export class CallBatch {
  /** All calls that have no result in the history, in call order. */
  readonly calls: readonly ToolCall[]
  readonly #state: AgentState
  readonly #maxToolResultBytes: number | undefined
  readonly #deferred: ReadonlyMap<string, DeferredCall>
  readonly #routed: ReadonlyMap<string, CallAnswers>
  readonly #settled = new Map<string, ToolOutcome>()
  /** Calls that an earlier run has already reported as executed. */
  readonly #old = new Set<string>()

  constructor(
    { state, settled, answers = {}, maxToolResultBytes }: CallsInput,
    calls: readonly ToolCall[],
  ) {
    this.#maxToolResultBytes = maxToolResultBytes
    const { answered, deferred = [] } = state.suspension ?? {}
    this.#state = state
    this.calls = calls
    this.#deferred = new Map(deferred.map((call) => [call.toolCallId, call]))
    this.#routed = routeAnswers(deferred, answers)
    for (const { toolCallId, result, isError } of answered?.results ?? []) {
      this.#old.add(toolCallId)
      const message = typeof result === 'string' ? result : (JSON.stringify(result) ?? '')
      this.#settled.set(toolCallId, isError ? { type: 'error', message } : { type: 'done', result })
    }
    for (const { toolCallId, request } of deferred) {
      const { own, inner } = this.#routed.get(toolCallId) ?? {}
      const outcome = own || inner ? outcomeOf(own) : { type: 'deferred' as const, request }
      if (outcome) this.#settled.set(toolCallId, outcome)
    }
    settled?.forEach((outcome, id) => this.#settled.set(id, outcome))
  }

  get settled(): ReadonlyMap<string, ToolOutcome> {
    return this.#settled
  }

  /**
   * Returns the executor's settings for a call that was deferred before. An approved call runs without asking
   * its tool for approval again, and so does a call with answers for the sub-agent inside it.
   */
  portsOf({ toolCallId }: ToolCall): Pick<CallPorts, 'isApproved' | 'parsed' | 'context'> {
    const { own: answer, inner: answers } = this.#routed.get(toolCallId) ?? {}
    const { request: deferred, parsed } = this.#deferred.get(toolCallId) ?? {}
    const isApproved = answer?.type === 'approve' || answers !== undefined
    return { isApproved, parsed, context: { deferred, answer, answers } }
  }

  /** Returns the state after the calls: with one message of results, or suspended if some calls wait. */
  end(
    { settled, warnings }: BatchResult,
    sources: { readonly ids: IdSource; readonly clock: Clock },
  ): CallsResult {
    const withOutcome = settled.filter(({ outcome }) => outcome.type !== 'deferred')
    const results =
      withOutcome.length > 0
        ? new ToolResultMessage(
            withOutcome.map((one) => toFittingResult(toToolResult(one), this.#maxToolResultBytes)),
            sources,
          )
        : undefined
    const executions = withOutcome
      .filter(({ call }) => !this.#old.has(call.toolCallId))
      .map(toToolExecution)
    if (withOutcome.length === this.calls.length) {
      const messages = results ? [results] : []
      const added = this.#state.withMessages(messages)
      const state = added.suspension ? added.withSuspension(undefined) : added
      return { state, messages, executions, warnings, openCalls: [], interrupts: [] }
    }
    const openCalls = settled.flatMap(
      ({ call: { toolCallId }, outcome, parsed: own }): DeferredCall[] => {
        if (outcome.type !== 'deferred') return []
        const { request } = outcome
        // A call that was not made again, because it still waits, keeps what was parsed when it was made.
        const record = own ?? this.#deferred.get(toolCallId)?.parsed
        return [record ? { toolCallId, request, parsed: record } : { toolCallId, request }]
      },
    )
    const outcomeIds = new Set(withOutcome.map(({ call }) => call.toolCallId))
    const open = this.calls.filter(({ toolCallId }) => !outcomeIds.has(toolCallId))
    return {
      state: this.#state.withSuspension({ answered: results, deferred: openCalls }),
      messages: [],
      executions,
      warnings,
      openCalls: open.map(
        ({ toolCallId }) =>
          openCalls.find((call) => call.toolCallId === toolCallId) ?? { toolCallId },
      ),
      interrupts: interruptsOf(openCalls),
    }
  }
}

/**
 * Returns the state with answers to its deferred calls, so that they can be saved before the calls run.
 * Throws for an answer that matches no interrupt.
 */
export function withAnswers(state: AgentState, answers: Answers): AgentState {
  const { suspension } = state
  if (!suspension || Object.keys(answers).length === 0) return state
  const routes = routeAnswers(suspension.deferred, answers)
  const openCalls = suspension.deferred.map((call): DeferredCall => {
    const { answer: _answer, answers: _answers, ...waiting } = call
    const { own, inner } = routes.get(call.toolCallId) ?? {}
    if (own) return { ...waiting, answer: own }
    return inner ? { ...waiting, answers: inner } : waiting
  })
  return state.withSuspension({ ...suspension, deferred: openCalls })
}

/** The answers for one deferred call: its own, or those for interrupts inside its sub-agent. */
interface CallAnswers {
  readonly own?: Answer
  /** Answers by the id that the interrupt has inside the sub-agent. */
  readonly inner?: Answers
}

/**
 * Assigns each answer to its deferred call, or to the sub-agent inside that call. Throws for an answer that
 * matches no interrupt or several.
 */
function routeAnswers(
  deferred: readonly DeferredCall[],
  answers: Answers,
): ReadonlyMap<string, CallAnswers> {
  // A call that was answered before a crash may be answered again: the application cannot know whether the
  // answer was saved.
  const interrupts = allInterruptsOf(deferred)
  const routes = new Map<string, CallAnswers>()
  for (const { toolCallId, answer, answers: inner } of deferred) {
    if (answer) checkAnswer(answer, toolCallId)
    for (const [id, one] of Object.entries(inner ?? {})) checkAnswer(one, `${toolCallId}/${id}`)
    if (answer) routes.set(toolCallId, { own: answer })
    else if (inner) routes.set(toolCallId, { inner })
  }
  for (const [name, answer] of Object.entries(answers)) {
    const { id } = findInterrupt(interrupts, name)
    checkAnswer(answer, name)
    const parent = deferred.find((call) => id.startsWith(`${call.toolCallId}/`))
    const isOwn = deferred.some((call) => call.toolCallId === id)
    if (isOwn || !parent) routes.set(id, { own: answer })
    else {
      const inner = routes.get(parent.toolCallId)?.inner
      const innerId = id.slice(parent.toolCallId.length + 1)
      routes.set(parent.toolCallId, { inner: { ...inner, [innerId]: answer } })
    }
  }
  return routes
}

function findInterrupt(interrupts: readonly Interrupt[], name: string): Interrupt {
  const exact = interrupts.find(({ id }) => id === name)
  if (exact) return exact
  const matches = interrupts.filter(({ toolCallId }) => toolCallId === name)
  if (matches.length === 1) return matches[0]!
  const ids = (matches.length > 1 ? matches : interrupts).map(({ id }) => `"${id}"`).join(', ')
  if (matches.length > 1)
    throw invalidUse(
      `The answer for "${name}" could be for several calls.`,
      `Answer by interrupt id: ${ids}.`,
    )
  throw invalidUse(`No call "${name}" waits for an answer.`, `Open interrupts: ${ids || 'none'}.`)
}

function checkAnswer(answer: unknown, name: string): void {
  const { type, reason, message, data } = isPlainObject(answer) ? answer : {}
  if (type === 'result' || (type === 'approve' && (data === undefined || isPlainObject(data))))
    return
  if (type === 'deny' && typeof reason === 'string') return
  if (type === 'error' && typeof message === 'string') return
  throw invalidUse(
    `The value for "${name}" is not an answer.`,
    "Answer { type: 'approve' } (with `data`, an object, if the question asks for some), { type: 'deny', reason }, { type: 'result', value } or { type: 'error', message }.",
  )
}

/** Returns the outcome that an answer determines. An approval determines none: it only lets the call run. */
function outcomeOf(answer: Answer | undefined): ToolOutcome | undefined {
  switch (answer?.type) {
    case 'deny':
      return { type: 'denied', reason: answer.reason }
    case 'result':
      return { type: 'done', result: answer.value as JsonValue }
    case 'error':
      return { type: 'error', message: answer.message }
    default:
      return undefined
  }
}
