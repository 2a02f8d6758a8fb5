import { deepFreeze } from '@skein/base'
import {
  addUsage,
  AssistantMessage,
  zeroUsage,
  type Message,
  type OpenCall,
  type TokenUsage,
  type ToolExecution,
  type Turn,
  type Warning,
} from '@skein/ai'

/** Where one step begins in the lists of a record. */
interface Mark {
  readonly messages: number
  readonly executions: number
  readonly cycles: number
  readonly warnings: number
}

const start: Mark = { messages: 0, executions: 0, cycles: 0, warnings: 0 }

/**
 * What a run has produced, from which its turn and that of each step are made: all messages
 * with input and prompts, all executions, summed usage; all other fields are those of the last inference.
 */
export class RunRecord {
  /** The agent's own tokens, without those of sub-agents. */
  usage: TokenUsage = zeroUsage
  openCalls: readonly OpenCall[] = []
  readonly #messages: Message[] = []
  readonly #executions: ToolExecution[] = []
  readonly #cycles: TokenUsage[] = []
  readonly #warnings: Warning[] = []
  #last: Turn | undefined
  #step: Mark = start

  /** Whether a model was asked. */
  get hasAnswer(): boolean {
    return this.#last !== undefined
  }

  addMessages(messages: readonly Message[]): void {
    for (const message of messages) this.#messages.push(message)
  }

  /** An inference, whose messages are those that were not in the record yet. */
  addInference(turn: Turn, messages: readonly Message[]): void {
    this.#last = turn
    this.openCalls = turn.openCalls
    this.addMessages(messages)
    this.#executions.push(...turn.toolExecutions)
    this.#cycles.push(...turn.usageByCycle)
    this.#warnings.push(...turn.warnings)
    this.usage = addUsage(this.usage, turn.usage)
  }

  addExecutions(executions: readonly ToolExecution[], warnings: readonly Warning[]): void {
    this.#executions.push(...executions)
    this.#warnings.push(...warnings)
  }

  beginStep(): void {
    this.#step = {
      messages: this.#messages.length,
      executions: this.#executions.length,
      cycles: this.#cycles.length,
      warnings: this.#warnings.length,
    }
  }

  /** The run so far. `response` is used only where no model was asked. */
  turn(response?: AssistantMessage): Turn {
    return this.#since(start, this.usage, response)
  }

  /** Tokens of the current step. */
  get stepUsage(): TokenUsage {
    return this.#cycles.slice(this.#step.cycles).reduce(addUsage, zeroUsage)
  }

  /** The current step so far. */
  stepTurn(response?: AssistantMessage): Turn {
    return this.#since(this.#step, this.stepUsage, response)
  }

  #since(mark: Mark, usage: TokenUsage, response: AssistantMessage | undefined): Turn {
    const usageByCycle = this.#cycles.slice(mark.cycles)
    const last = this.#last ?? {
      response: response ?? new AssistantMessage([]),
      stopReason: 'other',
    }
    return deepFreeze({
      ...last,
      messages: this.#messages.slice(mark.messages),
      toolExecutions: this.#executions.slice(mark.executions),
      usage,
      usageByCycle,
      cycles: usageByCycle.length,
      warnings: this.#warnings.slice(mark.warnings),
      openCalls: this.openCalls,
    })
  }
}
