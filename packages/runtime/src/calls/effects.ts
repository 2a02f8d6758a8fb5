import { messageOf } from '@skein/base'
import type { DrainContext, Write } from '../contract/context.ts'
import type { RuntimeEvent } from '../contract/event.ts'
import { afterStored, hookedWriteOf, within } from '../hooks/hooks.ts'
import type { EffectState } from '../contract/state.ts'
import { nextCronTime } from '../thread/effects.ts'

/**
 * Runs a scheduled effect that is due. Its changes to the thread are committed together with its end. An
 * effect that fails is retried as its definition says; an effect with a cron expression then continues at its
 * next time.
 */
export async function runEffect(context: DrainContext, effectId: string): Promise<void> {
  const { environment, epoch, state, agent } = context
  const effect = state.effects.get(effectId)
  if (!effect) return
  const { name, args } = effect.scheduled
  const definition = environment.registry.effects.get(name)
  const retry = definition?.retry
  // If all attempts are used up, this run is the next scheduled run of a cron expression, so its attempts are
  // counted from 1 again.
  const attempt = effect.attempts < (retry?.attempts ?? 1) ? effect.attempts + 1 : 1
  const started = { type: 'effect_started', at: context.at(), effectId, attempt, epoch } as const
  await context.commit('effect_start', { events: [started] })
  const facade = context.facade(agent.a)
  try {
    if (!definition) throw new Error(`There is no effect "${name}" any more.`)
    const run = (signal: AbortSignal) =>
      context.runUserCode({ kind: 'effect', name, id: effectId }, () =>
        definition.run(facade.state, args, signal),
      )
    await within(definition.timeoutMs ?? 60_000, run, context.signal)
  } catch (error) {
    if (context.signal.aborted) return
    return context.commit('effect_end', failed(error))
  }
  const write = await hookedWriteOf(context, facade.takeChanges(), agent.a)
  const events = [...write.events, ended(context, effect, {})]
  let isStored = true
  const onConflict = (error: unknown): Write => {
    isStored = false
    return failed(error)
  }
  await context.commit('effect_end', { ...write, events, onConflict, isProgress: true })
  if (isStored) await afterStored(context, agent.a, write.events)

  function failed(error: unknown): Write {
    const again =
      retry && attempt < retry.attempts
        ? environment.clock.now() + retry.backoffMs * 2 ** (attempt - 1)
        : undefined
    const end = ended(context, effect!, { error: messageOf(error), runAt: again })
    return { events: [end], isProgress: true }
  }
}

function ended(
  context: DrainContext,
  { scheduled: { effectId, cron } }: EffectState,
  { error, runAt }: { readonly error?: string; readonly runAt?: number | undefined },
): RuntimeEvent {
  const now = context.environment.clock.now()
  // The next cron time is computed from now: after a pause the effect runs once, not once per missed time.
  const next = runAt ?? (cron === undefined ? undefined : nextCronTime(cron, now))
  return {
    type: 'effect_ended',
    at: context.at(),
    effectId,
    outcome: error === undefined ? 'done' : 'failed',
    error,
    runAt: next === undefined ? undefined : new Date(next).toISOString(),
  }
}
