import type { AgentStrategy } from '../contract/agent-types.ts'
import type { AgentState } from '../state/state.ts'

const given = Symbol('the strategy as it was given')

/**
 * The hooks as a strategy of the application sees them: its call of `onStepEnd` also saves the state
 * (UAP §12.4.5). The built-in strategies save by themselves, after their `step_end` event, so they use
 * the hooks as the application gave them: see `hooksOf`.
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

/** The hooks as the application gave them. */
export function hooksOf(strategy: AgentStrategy): AgentStrategy {
  return (strategy as { [given]?: AgentStrategy })[given] ?? strategy
}

/**
 * An object that behaves as `hooks` except for some properties. Its functions are bound to the
 * original, so that hooks of a class instance find their own fields, private ones too. The original is
 * not changed.
 */
export function boundHooks<T extends object>(
  hooks: T,
  names: readonly (keyof T & string)[],
  changes: Partial<T>,
): T {
  const derived = Object.create(hooks) as T
  // Not by assignment: the original may be frozen, and then its properties are read-only here too.
  const define = (name: string, value: unknown): unknown =>
    Object.defineProperty(derived, name, { value, enumerable: true })
  for (const name of names) {
    const hook = hooks[name]
    if (typeof hook === 'function') define(name, hook.bind(hooks))
  }
  for (const [name, value] of Object.entries(changes)) define(name, value)
  return derived
}
