import type { ResolvedSide } from '../definitions/resolved.ts'
import type { HookName, HookSignatures } from '../definitions/hooks.ts'
import type { HookDefinition } from '../definitions/types.ts'
import { messageOf } from './message-of.ts'
import type { DrainContext } from './drain-context.ts'
import { writeOf } from './facade-changes.ts'

/** What a hook may answer beside nothing. */
export type HookAnswer<Name extends HookName> = Exclude<
  Awaited<ReturnType<HookSignatures[Name]>>,
  void
>

export interface HookUse<Name extends HookName, T> {
  readonly side: ResolvedSide
  readonly name: Name
  /** What the hooks are given, from what the ones before have made of it. */
  readonly args: (value: T) => readonly unknown[]
  /** How an answer changes the value; called for answers that are something. */
  readonly fold?: (value: T, answer: HookAnswer<Name>) => T
}

/** A hook that asked for the session to end before anything is spent. */
export class HookBlockedError extends Error {}

/**
 * Runs the hooks of one kind in listed order. One that throws or takes too long is noted in the log
 * and passed over; what it changed in the thread is dropped with it.
 */
export async function runHooks<Name extends HookName, T>(
  context: DrainContext,
  use: HookUse<Name, T>,
  value: T,
): Promise<T> {
  for (const hook of use.side.hooks) {
    if (hook.hook !== use.name) continue
    value = await runHook(context, use, hook, value)
  }
  return value
}

async function runHook<Name extends HookName, T>(
  context: DrainContext,
  { side, args, fold }: HookUse<Name, T>,
  hook: HookDefinition,
  value: T,
): Promise<T> {
  const facade = context.facade(side)
  try {
    const execute = hook.execute as (...all: unknown[]) => unknown // the name was compared above
    const timeoutMs = hook.timeoutMs ?? context.environment.limits.hookTimeoutMs
    const answer = await within(timeoutMs, async () => execute(facade.state, ...args(value)))
    const write = await writeOf(context, facade.takeChanges())
    if (write.events.length + write.others.length > 0)
      await context.commit(`hook_${hook.hook}`, write)
    if (answer === undefined || !fold) return value
    return fold(value, answer as never) // the answer is the hook's own
  } catch (error) {
    if (hook.hook === 'prefilter_llm_history' && isBlock(error))
      throw new HookBlockedError(messageOf(error))
    const message = `The hook "${hook.id}" failed: ${messageOf(error)}`
    const raised = { type: 'error_raised', at: context.at(), code: 'HOOK_FAILED', message } as const
    await context.commit('hook_failed', { events: [raised] })
    return value
  }
}

function isBlock(error: unknown): boolean {
  return (error as { readonly block?: unknown } | null)?.block === true
}

/** Rejects when the work takes longer. */
export async function within<T>(timeoutMs: number, work: () => Promise<T>): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const tooLate = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`it took longer than ${timeoutMs} ms`)), timeoutMs)
  })
  try {
    return await Promise.race([work(), tooLate])
  } finally {
    clearTimeout(timer)
  }
}
