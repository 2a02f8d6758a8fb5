import { messageOf, withTimeLimit } from '@skein/base'
import type { RuntimeEvent } from '../contract/event.ts'
import type { ThreadState } from '../contract/thread-state.ts'
import type { HookDefinition } from '../definitions/hook-definition.ts'
import type { KernelState } from '../state/kernel-state.ts'
import { HookAnswerError, readHookAnswer } from './read-answer.ts'
import { ANSWERS } from './hook-kinds.ts'

/** Where a hook runs: in the work on a thread, or in a call of the API. */
export interface HookPlace {
  /** The folded state of the thread. */
  readonly state: Pick<KernelState, 'callPlaces'>
  /** The time limit of hooks that have none of their own. */
  readonly timeoutMs: number
  /** Calls `work` with the state of the thread. Commits what `work` changed if it returns, else drops it. */
  withState<T>(hook: HookDefinition, work: (state: ThreadState) => Promise<T>): Promise<T>
  runUserCode<T>(code: { readonly kind: 'hook'; readonly name: string }, work: () => T): T
  at(): string
  /** Writes the failure of a hook to the log. */
  raise(event: Extract<RuntimeEvent, { type: 'error_raised' }>): Promise<void>
  /** Reports an error to the operator. */
  report(error: unknown): void
}

/** Thrown when a hook asks to end the session before a request is sent to the model. */
export class HookBlockedError extends Error {}

/**
 * Runs one hook, everywhere in the same way. Its changes in the thread are committed as soon as it returns. If it
 * throws, takes too long or returns something of the wrong shape, the error is written to the log, and its changes
 * and its answer are dropped. Returns its answer, or undefined if there is none that counts; the answer of a hook that
 * only observes does not count.
 */
export async function runHook(
  place: HookPlace,
  hook: HookDefinition,
  args: readonly unknown[],
): Promise<{ readonly answer: unknown } | undefined> {
  const execute = hook.execute as (...all: unknown[]) => unknown // the caller has the arguments of this kind of hook
  try {
    return await place.withState(hook, async (state) => {
      const answer = await withTimeLimit(
        async () =>
          place.runUserCode({ kind: 'hook', name: hook.id }, () => execute(state, ...args)),
        { limitMs: hook.timeoutMs ?? place.timeoutMs },
      )
      if (answer === undefined || !ANSWERS[hook.hook]) return undefined
      return readHookAnswer(place, hook, answer, args.at(-1))
    })
  } catch (error) {
    if (error instanceof HookAnswerError) {
      await reportHookAnswer(place, error)
      return undefined
    }
    const isBlock = (error as { readonly block?: unknown } | null)?.block === true
    if (hook.hook === 'prefilter_llm_history' && isBlock)
      throw new HookBlockedError(messageOf(error))
    const message = `The hook "${hook.id}" failed: ${messageOf(error)}`
    await place.raise({ type: 'error_raised', at: place.at(), code: 'HOOK_FAILED', message })
    return undefined
  }
}

/** Writes a wrong answer of a hook to the log and reports it to the operator. */
export async function reportHookAnswer(
  place: Pick<HookPlace, 'at' | 'raise' | 'report'>,
  error: HookAnswerError,
): Promise<void> {
  const { code, message, hint } = error
  await place.raise({ type: 'error_raised', at: place.at(), code, message, hint })
  place.report(error)
}
