import type { JsonValue } from '@skein/base'
import type { ToolSchema } from '@skein/ai'
import type { ThreadState } from '../thread-state.ts'
import { checkedArguments } from './checked-arguments.ts'
import type { EffectDefinition } from './types.ts'

/** What `defineEffect` makes an effect of. */
export interface EffectOptions<Args> extends Omit<EffectDefinition, 'kind' | 'run'> {
  /** Any Standard Schema; checked before every run. Without it arguments are any JSON. */
  readonly args?: ToolSchema<Args>
  readonly execute: (state: ThreadState, args: NoInfer<Args>, signal: AbortSignal) => unknown
}

/**
 * Defines work that a tool, a hook or a person schedules.
 *
 *     const remind = defineEffect({
 *       name: 'remind',
 *       args: z.object({ text: z.string() }),
 *       execute: (state, { text }) => state.queueMessage({ content: text }),
 *     })
 */
export function defineEffect<Args = JsonValue>(options: EffectOptions<Args>): EffectDefinition {
  const { args, execute, ...rest } = options
  if (typeof execute !== 'function') {
    return Object.freeze({ ...rest, kind: 'effect' as const, run: execute }) // loading names it
  }
  const check = args && checkedArguments({ kind: 'effect', name: options.name }, args).check
  return Object.freeze({
    ...rest,
    kind: 'effect' as const,
    run: async (state: ThreadState, given: JsonValue, signal: AbortSignal) =>
      execute(state, check ? await check(given) : (given as Args), signal), // Args is JSON without a schema
  })
}
