import { isPlainObject, type JsonObject } from '@skein/base'
import type { KernelState } from './kernel-state.ts'

/** The key in a message's metadata under which its `ChosenRun` is stored; only the runtime writes it. */
export const CHOSEN_RUN = 'skein:run'

/** What the last message to the agent chose for its answer instead of what the agent's definition says. */
export interface ChosenRun {
  readonly model?: string
  readonly settings?: JsonObject
  readonly call?: { readonly toolName: string; readonly arguments: JsonObject }
  /** Whether `call` was made already. */
  readonly isCalled: boolean
}

/**
 * Returns what the last message to the agent chose for its answer; undefined if it chose nothing. Reports of children,
 * and messages that were not queued (notes, and what tools put into the conversation), leave the choice as it is.
 */
export function chosenRun({
  entries,
  queuedIds,
}: Pick<KernelState, 'entries' | 'queuedIds'>): ChosenRun | undefined {
  const place = entries.findLastIndex(
    ({ message, turnId, subagentId }) =>
      message.type === 'user' && subagentId === undefined && queuedIds.has(turnId),
  )
  const choice = entries[place]?.metadata?.[CHOSEN_RUN]
  if (!isPlainObject(choice)) return undefined
  const isCalled = entries.slice(place + 1).some(({ calls }) => calls.length > 0)
  return { ...(choice as Omit<ChosenRun, 'isCalled'>), isCalled } // `queuedMessage` wrote it
}
