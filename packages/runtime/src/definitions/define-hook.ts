import type { HookName } from './hooks.ts'
import type { HookDefinition } from './types.ts'

/**
 * Defines code that runs at a fixed point of every thread that uses it.
 *
 *     const shout = defineHook({
 *       id: 'shout',
 *       hook: 'after_system_message',
 *       execute: (state, text) => text.toUpperCase(),
 *     })
 */
export function defineHook<Name extends HookName>(
  hook: Omit<HookDefinition<Name>, 'kind'>,
): HookDefinition<Name> {
  return Object.freeze({ ...hook, kind: 'hook' as const })
}
