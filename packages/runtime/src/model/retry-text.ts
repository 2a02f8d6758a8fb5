import type { Step } from '../state/kernel-state.ts'

/** Returns the status text of a thread that waits to ask its model again. */
export function waitText({ at, reason }: NonNullable<Step['retry']>): string {
  return `Waits until ${at} to ask the model again: ${reason}`
}
