import type { RuntimeEvent } from '../event.ts'
import { nextCronTime } from '../services/cron.ts'
import type { DrainContext } from './drain-context.ts'
import { hookedWriteOf } from './facade-changes.ts'
import { tellMessageHooks } from './message-hooks.ts'
import { messageOf } from './message-of.ts'
import type { Effect } from './state.ts'

/** Runs an effect that is due. What it changes in the thread commits with its end. */
export async function runEffect(context: DrainContext, effectId: string): Promise<void> {
  const { environment, epoch, state, agent } = context
  const effect = state.effects.get(effectId)
  if (!effect) return
  const { name, args } = effect.scheduled
  const definition = environment.registry.effects.get(name)
  // Tries that are used up belong to an earlier time of the calendar.
  const attempt = effect.attempts < (definition?.retry?.attempts ?? 1) ? effect.attempts + 1 : 1
  const started = { type: 'effect_started', at: context.at(), effectId, attempt, epoch } as const
  await context.commit('effect_start', { events: [started] })
  const facade = context.facade(agent.a)
  try {
    if (!definition) throw new Error(`There is no effect "${name}" any more.`)
    const timeoutMs = definition.timeoutMs ?? 60_000
    await bounded(timeoutMs, context.signal, (signal) => definition.run(facade.state, args, signal))
  } catch (error) {
    if (context.signal.aborted) return
    return failed(context, effect, { attempt, message: messageOf(error) })
  }
  const write = await hookedWriteOf(context, facade.takeChanges(), agent.a)
  await context.commit('effect_end', {
    ...write,
    events: [...write.events, ended(context, effect, { outcome: 'done' })],
    isProgress: true,
  })
  await tellMessageHooks(context, agent.a, write.events)
}

/** Tried again as its definition says; a calendar goes on with its next time. */
async function failed(
  context: DrainContext,
  effect: Effect,
  { attempt, message }: { readonly attempt: number; readonly message: string },
): Promise<void> {
  const { environment } = context
  const retry = environment.registry.effects.get(effect.scheduled.name)?.retry
  const mayRetry = retry !== undefined && attempt < retry.attempts
  const runAt = mayRetry
    ? new Date(environment.clock.now() + retry.backoffMs * 2 ** (attempt - 1)).toISOString()
    : undefined
  const events = [
    ended(context, effect, {
      outcome: 'failed',
      error: message,
      ...(runAt !== undefined && { runAt }),
    }),
  ]
  await context.commit('effect_end', { events, isProgress: true })
}

function ended(
  context: DrainContext,
  { scheduled }: Effect,
  end: { readonly outcome: 'done' | 'failed'; readonly error?: string; readonly runAt?: string },
): RuntimeEvent {
  const { effectId, cron } = scheduled
  const now = context.environment.clock.now()
  // After a pause the calendar goes on from now: one catch-up, not one run per missed time.
  const next = cron === undefined ? undefined : new Date(nextCronTime(cron, now)).toISOString()
  const runAt = end.runAt ?? next
  return {
    type: 'effect_ended',
    at: context.at(),
    effectId,
    ...end,
    ...(runAt !== undefined && { runAt }),
  }
}

async function bounded<T>(
  timeoutMs: number,
  outer: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const controller = new AbortController()
  const signal = AbortSignal.any([outer, controller.signal])
  let timer: ReturnType<typeof setTimeout> | undefined
  const tooLate = new Promise<never>((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true })
    timer = setTimeout(
      () => controller.abort(new Error(`it took longer than ${timeoutMs} ms`)),
      timeoutMs,
    )
  })
  try {
    return await Promise.race([work(signal), tooLate])
  } finally {
    clearTimeout(timer)
  }
}
