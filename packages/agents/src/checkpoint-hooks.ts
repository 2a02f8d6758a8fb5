import { boundHooks } from './bound-hooks.ts'
import type { AgentState } from './state.ts'
import type { AgentStrategy } from './strategy.ts'

const given = Symbol('the strategy as it was given')

/**
 * The hooks as a strategy of the application sees them: its call of `onStepEnd` also saves the state
 * (UAP §12.4.5). The built-in strategies save by themselves, after their `step_end` event.
 */
export function savingHooks(
  strategy: AgentStrategy,
  save: (state: AgentState) => void | Promise<void>,
): AgentStrategy {
  const saving = boundHooks(strategy, otherHooks, {
    onStepEnd: async (step, result) => {
      const adopted = await strategy.onStepEnd?.(step, result)
      await save(adopted ?? result.state)
      return adopted
    },
  })
  return Object.defineProperty(saving, given, { value: strategy })
}

const otherHooks = [
  'stopCondition',
  'onStepStart',
  'onReason',
  'onAct',
  'onObserve',
  'onComplete',
  'onError',
] as const satisfies readonly (keyof AgentStrategy)[]

/** The hooks as they were given. */
export function hooksOf(strategy: AgentStrategy): AgentStrategy {
  return (strategy as { [given]?: AgentStrategy })[given] ?? strategy
}
