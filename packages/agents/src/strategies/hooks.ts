import type { AgentStrategy } from '../contract/agent-types.ts'
import type { AgentState } from '../state/state.ts'

const given = Symbol('the strategy as it was given')

/**
 * Returns the hooks for an application's own strategy: when it calls `onStepEnd`, the state is also saved
 * (UAP §12.4.5). The built-in strategies save after their `step_end` event themselves, so they use the
 * application's original hooks: see `hooksOf`.
 */
export function savingHooks(
  strategy: AgentStrategy,
  save: (state: AgentState) => void | Promise<void>,
): AgentStrategy {
  const saving = boundHooks(strategy, otherHooks, {
    onStepEnd: async (step, result) => {
      const ownState = await strategy.onStepEnd?.(step, result)
      await save(ownState ?? result.state)
      return ownState
    },
  })
  return Object.defineProperty(saving, given, { value: strategy })
}

const otherHooks = [
  'stopCondition',
  'onStepStart',
  'onReason',
  'onInference',
  'onAct',
  'onObserve',
  'onComplete',
  'onError',
] as const satisfies readonly (keyof AgentStrategy)[]

/** Returns the original hooks of the application, without those added by `savingHooks`. */
export function hooksOf(strategy: AgentStrategy): AgentStrategy {
  return (strategy as { [given]?: AgentStrategy })[given] ?? strategy
}

/**
 * Returns an object that behaves like `hooks` except for some properties. Its functions are bound to the
 * original object, so that hooks of a class instance can use their fields, also private ones. The original is
 * not changed.
 */
export function boundHooks<T extends object>(
  hooks: T,
  names: readonly (keyof T & string)[],
  changes: Partial<T>,
): T {
  const copy = Object.create(hooks) as T
  // The properties are defined, because assigning them would fail if the original is frozen.
  const define = (name: string, value: unknown): unknown =>
    Object.defineProperty(copy, name, { value, enumerable: true })
  for (const name of names) {
    const hook = hooks[name]
    if (typeof hook === 'function') define(name, hook.bind(hooks))
  }
  for (const [name, value] of Object.entries(changes)) define(name, value)
  return copy
}
