import type { HookName, HookSignatures } from './hooks.ts'

/** Code that runs at a fixed point of a thread; see `HookSignatures`. */
export interface HookDefinition<Name extends HookName = HookName> {
  readonly kind: 'hook'
  readonly id: string
  readonly hook: Name
  readonly execute: HookSignatures[Name]
  /** Default 5 s. A hook that takes longer is logged, and its result is ignored. */
  readonly timeoutMs?: number
}
