import { canonicalJson } from '@skein/base'
import type { ToolExecution } from '@skein/ai'
import type { PlanStep } from '../state/state-types.ts'

/**
 * Assigns calls to the steps of a plan that are carried out together. Several of them may name the same tool, and the
 * model does not say for which step a call is: a call with the arguments of an earlier one repeats it; otherwise it
 * belongs to the first step of its tool without a call, then to the first whose last call failed, then to the last.
 */
export class StepCalls {
  readonly #steps: readonly PlanStep[]
  readonly #calls = new Map<PlanStep, ToolExecution[]>()

  constructor(steps: readonly PlanStep[]) {
    this.#steps = steps
  }

  add(execution: ToolExecution): void {
    const steps = this.#steps.filter(({ tool }) => tool === execution.toolName)
    const step =
      steps.find((one) => this.#of(one).some((call) => isRepeated(call, execution))) ??
      steps.find((one) => this.#of(one).length === 0) ??
      steps.find((one) => this.lastOf(one)?.isError) ??
      steps.at(-1)
    if (step) this.#calls.set(step, [...this.#of(step), execution])
  }

  /** Returns the last call of a step; undefined if there was none. */
  lastOf(step: PlanStep): ToolExecution | undefined {
    return this.#of(step).at(-1)
  }

  #of(step: PlanStep): readonly ToolExecution[] {
    return this.#calls.get(step) ?? []
  }
}

function isRepeated(one: ToolExecution, other: ToolExecution): boolean {
  return one.isError && canonicalJson(one.arguments) === canonicalJson(other.arguments)
}
