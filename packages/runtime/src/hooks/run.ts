import type { HookName, HookSignatures } from '../definitions/hooks.ts'
import type { ResolvedSide } from '../definitions/resolved.ts'
import type { DrainContext } from '../context.ts'
import { messageOf } from '../error.ts'
import { writeOf } from '../thread/changes.ts'

/** What a hook may return, apart from nothing. */
export type HookAnswer<Name extends HookName> = Exclude<
  Awaited<ReturnType<HookSignatures[Name]>>,
  void
>

/** One place where hooks run: whose hooks, which kind, and how their answers change a value. */
export interface HookUse<Name extends HookName, T> {
  readonly side: ResolvedSide
  readonly name: Name
  /** The arguments of a hook, made from the value as the hooks before it have left it. */
  readonly args: (value: T) => readonly unknown[]
  /** How an answer changes the value. It is not called for hooks that return nothing. */
  readonly fold?: (value: T, answer: HookAnswer<Name>) => T
}

/** A hook asked for the session to end before anything is spent. */
export class HookBlockedError extends Error {}

/**
 * Runs the hooks of one kind in listed order. What a hook changed in the thread is committed as soon
 * as the hook returns. A hook that throws or takes too long is recorded in the log and skipped; its
 * changes to the thread are dropped.
 */
export async function runHooks<Name extends HookName, T>(
  context: DrainContext,
  { side, name, args, fold }: HookUse<Name, T>,
  value: T,
): Promise<T> {
  for (const hook of side.hooks) {
    if (hook.hook !== name) continue
    const facade = context.facade(side)
    try {
      const execute = hook.execute as (...all: unknown[]) => unknown // the name was compared above
      const timeoutMs = hook.timeoutMs ?? context.environment.limits.hookTimeoutMs
      const answer = await within(timeoutMs, async () => execute(facade.state, ...args(value)))
      const write = await writeOf(context, facade.takeChanges())
      if (write.events.length + write.others.length > 0)
        await context.commit(`hook_${hook.hook}`, write)
      if (answer !== undefined && fold) value = fold(value, answer as never) // the answer is the hook's own
    } catch (error) {
      const isBlock = (error as { readonly block?: unknown } | null)?.block === true
      if (name === 'prefilter_llm_history' && isBlock) throw new HookBlockedError(messageOf(error))
      const message = `The hook "${hook.id}" failed: ${messageOf(error)}`
      const raised = {
        type: 'error_raised',
        at: context.at(),
        code: 'HOOK_FAILED',
        message,
      } as const
      await context.commit('hook_failed', { events: [raised] })
    }
  }
  return value
}

/**
 * The result of some work, or a rejection when it takes longer. The work is given a signal that is
 * aborted when the time is over or when the outer signal is; an outer abort rejects as well.
 */
export async function within<T>(
  timeoutMs: number,
  work: (signal: AbortSignal) => Promise<T>,
  outer?: AbortSignal,
): Promise<T> {
  const controller = new AbortController()
  const signal = outer ? AbortSignal.any([outer, controller.signal]) : controller.signal
  let timer: ReturnType<typeof setTimeout> | undefined
  const tooLate = new Promise<never>((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true })
    const late = new Error(`it took longer than ${timeoutMs} ms`)
    timer = setTimeout(() => controller.abort(late), timeoutMs)
  })
  try {
    return await Promise.race([work(signal), tooLate])
  } finally {
    clearTimeout(timer)
  }
}
