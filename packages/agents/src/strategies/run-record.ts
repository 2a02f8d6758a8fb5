import { freezeTree } from '@skein/base'
import {
  AssistantMessage,
  type Message,
  type OpenCall,
  type Source,
  type TokenUsage,
  type ToolExecution,
  type Turn,
  type Warning,
} from '@skein/ai'
import { addSources, addUsage, zeroUsage } from '@skein/ai/engine'

/** Where a step starts: how long each list of the record was at that time. */
interface Mark {
  readonly messages: number
  readonly executions: number
  readonly cycles: number
  readonly warnings: number
  readonly sources: number
}

const start: Mark = { messages: 0, executions: 0, cycles: 0, warnings: 0, sources: 0 }

/**
 * Records what a run has produced. The turns of the run and of each step are made from this record: all
 * messages with input and prompts, all executions and the summed usage; other fields are those of the last
 * inference.
 */
export class RunRecord {
  /** The agent's own tokens, without those of sub-agents. */
  usage: TokenUsage = zeroUsage
  openCalls: readonly OpenCall[] = []
  readonly #messages: Message[] = []
  readonly #executions: ToolExecution[] = []
  readonly #cycles: TokenUsage[] = []
  readonly #warnings: Warning[] = []
  readonly #sources: Source[] = []
  #last: Turn | undefined
  #step: Mark = start

  /** Whether a model has answered. */
  get hasAnswer(): boolean {
    return this.#last !== undefined
  }

  addMessages(messages: readonly Message[]): void {
    for (const message of messages) this.#messages.push(freezeTree(message))
  }

  /**
   * Adds an inference; `messages` are the messages that are not in the record yet. The turn of a model with
   * only `generate` and `stream` may have only the fields that UPP §7.1 names.
   */
  addInference(turn: Turn, messages: readonly Message[]): void {
    const { openCalls = [], toolExecutions = [], usageByCycle }: Partial<Turn> = turn
    const { warnings = [], sources = [] }: Partial<Turn> = turn
    this.#last = freezeTree(turn) // with all that is in it; a turn of `llm` is frozen already
    this.openCalls = openCalls
    this.addMessages(messages)
    this.#executions.push(...toolExecutions)
    this.#cycles.push(...(usageByCycle ?? [turn.usage]))
    this.#warnings.push(...warnings)
    this.#sources.push(...sources)
    this.usage = addUsage(this.usage, turn.usage)
  }

  addExecutions(executions: readonly ToolExecution[], warnings: readonly Warning[]): void {
    for (const execution of freezeTree(executions)) this.#executions.push(execution)
    for (const warning of freezeTree(warnings)) this.#warnings.push(warning)
  }

  beginStep(): void {
    this.#step = {
      messages: this.#messages.length,
      executions: this.#executions.length,
      cycles: this.#cycles.length,
      warnings: this.#warnings.length,
      sources: this.#sources.length,
    }
  }

  /** Returns the turn of the run so far. `response` is used only if no model has answered. */
  turn(response?: AssistantMessage): Turn {
    return this.#since(start, this.usage, response)
  }

  /** Tokens of the current step. */
  get stepUsage(): TokenUsage {
    return this.#cycles.slice(this.#step.cycles).reduce(addUsage, zeroUsage)
  }

  /** Returns the turn of the current step so far. */
  stepTurn(response?: AssistantMessage): Turn {
    return this.#since(this.#step, this.stepUsage, response)
  }

  #since(mark: Mark, usage: TokenUsage, response: AssistantMessage | undefined): Turn {
    const usageByCycle = this.#cycles.slice(mark.cycles)
    const last = this.#last ?? {
      response: response ?? new AssistantMessage([]),
      stopReason: 'other' as const,
    }
    // All items are frozen when they are added. Freezing the whole run again each time a stop condition reads
    // its turn would make long runs quadratic.
    const from = <T>(items: readonly T[], index: number): readonly T[] =>
      Object.freeze(items.slice(index))
    const turn: Omit<Turn, 'data'> = {
      ...last,
      text: last.response.text,
      messages: from(this.#messages, mark.messages),
      toolExecutions: from(this.#executions, mark.executions),
      usage: freezeTree(usage),
      usageByCycle: Object.freeze(usageByCycle),
      cycles: usageByCycle.length,
      warnings: from(this.#warnings, mark.warnings),
      sources: freezeTree(addSources([], this.#sources.slice(mark.sources))),
      openCalls: freezeTree(this.openCalls),
    }
    return Object.freeze(turn as Turn) // `data` is present only after a structured answer
  }
}
