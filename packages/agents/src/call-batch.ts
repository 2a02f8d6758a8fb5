import type { Clock, IdSource } from '@skein/base'
import {
  ToolResultMessage,
  toToolExecution,
  toToolResult,
  type BatchResult,
  type OpenCall,
  type SettledCall,
  type ToolCall,
  type ToolOutcome,
} from '@skein/ai'
import { interruptsOf, outcomeOf, routeAnswers, type CallAnswers } from './answers.ts'
import type { DeferredCall } from './interrupt.ts'
import type { AgentState } from './state.ts'
import type { StepInput, StepResult } from './step.ts'

/** One batch of calls with what is known about each: outcomes, answers, what it waited for. */
export class CallBatch {
  /** All that have no result in the history, in call order. */
  readonly calls: readonly ToolCall[]
  readonly #state: AgentState
  readonly #deferred: ReadonlyMap<string, DeferredCall>
  readonly #routed: ReadonlyMap<string, CallAnswers>
  readonly #settled = new Map<string, ToolOutcome>()
  /** Reported by an earlier run already. */
  readonly #old = new Set<string>()

  constructor({ state, settled, answers = {} }: StepInput, calls: readonly ToolCall[]) {
    const { answered, deferred = [] } = state.suspension ?? {}
    this.#state = state
    this.calls = calls
    this.#deferred = new Map(deferred.map((call) => [call.toolCallId, call]))
    this.#routed = routeAnswers(deferred, answers)
    for (const { toolCallId, result, isError } of answered?.results ?? []) {
      this.#old.add(toolCallId)
      this.#settled.set(
        toolCallId,
        isError ? { type: 'error', message: textOf(result) } : { type: 'done', result },
      )
    }
    for (const call of deferred) this.#settleDeferred(call)
    settled?.forEach((outcome, id) => this.#settled.set(id, outcome))
  }

  get settled(): ReadonlyMap<string, ToolOutcome> {
    return this.#settled
  }

  /** Calls that somebody approved: they are not asked about again. */
  get approved(): ReadonlySet<string> {
    return new Set(
      [...this.#routed].flatMap(([id, { own, inner }]) =>
        own?.type === 'approve' || inner ? [id] : [],
      ),
    )
  }

  contextOf({ toolCallId }: ToolCall): object {
    const { own, inner } = this.#routed.get(toolCallId) ?? {}
    const deferred = this.#deferred.get(toolCallId)?.request
    return {
      ...(deferred && { deferred }),
      ...(own && { answer: own }),
      ...(inner && { answers: inner }),
    }
  }

  end(
    { settled, warnings }: BatchResult,
    sources: { ids: IdSource; clock: Clock },
  ): Omit<StepResult, 'turn'> {
    const answered = settled.filter(({ outcome }) => outcome.type !== 'deferred')
    const results =
      answered.length > 0 ? new ToolResultMessage(answered.map(toToolResult), sources) : undefined
    const executions = answered
      .filter(({ call }) => !this.#old.has(call.toolCallId))
      .map(toToolExecution)
    const isWhole = answered.length === this.calls.length
    if (isWhole) {
      const messages = results ? [results] : []
      const added = this.#state.withMessages(messages)
      const state = added.suspension ? added.withSuspension(undefined) : added
      return { state, messages, executions, warnings, openCalls: [], interrupts: [] }
    }
    const deferred = settled.flatMap(deferredOf)
    const suspension = { ...(results && { answered: results }), deferred }
    return {
      state: this.#state.withSuspension(suspension),
      messages: [],
      executions,
      warnings,
      openCalls: this.#openCalls(answered, deferred),
      interrupts: interruptsOf(deferred),
    }
  }

  #settleDeferred({ toolCallId, request }: DeferredCall): void {
    const { own, inner } = this.#routed.get(toolCallId) ?? {}
    const outcome = own || inner ? outcomeOf(own) : { type: 'deferred' as const, request }
    if (outcome) this.#settled.set(toolCallId, outcome)
  }

  #openCalls(
    answered: readonly SettledCall[],
    deferred: readonly DeferredCall[],
  ): readonly OpenCall[] {
    const done = new Set(answered.map(({ call }) => call.toolCallId))
    return this.calls
      .filter(({ toolCallId }) => !done.has(toolCallId))
      .map(
        ({ toolCallId }) =>
          deferred.find((call) => call.toolCallId === toolCallId) ?? { toolCallId },
      )
  }
}

function textOf(result: unknown): string {
  return typeof result === 'string' ? result : (JSON.stringify(result) ?? '')
}

function deferredOf({ call, outcome }: SettledCall): DeferredCall[] {
  if (outcome.type !== 'deferred') return []
  return [{ toolCallId: call.toolCallId, request: outcome.request }]
}
