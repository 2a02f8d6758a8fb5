import { load, type ApiContext } from './api-context.ts'
import { bufferOf, editThread } from './edit-thread.ts'
import { RuntimeError } from '../contract/error.ts'
import type { EffectScheduled } from '../contract/event.ts'
import type { ThreadEffects } from '../contract/thread-contents.ts'
import { facadeEffects, scheduledEffects } from '../thread/effects.ts'
import { openForPeople, waitingCount } from '../state/questions.ts'

/** Creates the functions for effects, with the same checks as those of tools. */
export function effectsApi(context: ApiContext): ThreadEffects {
  return {
    list: async (threadId) => scheduledEffects((await load(context, threadId)).state.effects),
    async schedule(threadId, name, args, when) {
      const target = { threadId, point: 'schedule_effect' }
      const { result } = await editThread(context, target, ({ state }) => {
        const buffer = bufferOf(context, state)
        const id = facadeEffects(buffer).scheduleEffect(name, args, when)
        const { runAt } = buffer.events.at(-1) as EffectScheduled // the event that was written just above
        return { result: id, change: { append: buffer.events, wake: { by: Date.parse(runAt) } } }
      })
      return result
    },
    async runNow(threadId, effectId) {
      await editThread(context, { threadId, point: 'run_effect_now' }, ({ state }) => {
        const effect = state.effects.get(effectId)
        if (!effect)
          throw new RuntimeError(`Thread ${threadId} has no scheduled effect ${effectId}.`, {
            code: 'EFFECT_NOT_FOUND',
            hint: 'The effect may have run already, or was removed.',
          })
        if (effect.runningEpoch !== undefined) return { result: undefined }
        if (effect.interruptId !== undefined)
          throw new RuntimeError(
            `The effect ${effectId} of thread ${threadId} waits for a person.`,
            {
              code: 'EFFECT_INVALID',
              hint: 'Answer its question first; `inbox.list` shows it.',
            },
          )
        const at = context.at()
        const append = [{ ...effect.scheduled, at, runAt: at }]
        return { result: undefined, change: { append, wake: { by: context.clock.now() } } }
      })
    },
    async remove(threadId, effectId) {
      const target = { threadId, point: 'remove_effect' }
      const { result } = await editThread(context, target, ({ state }) => {
        const buffer = bufferOf(context, state)
        const isThere = facadeEffects(buffer).removeScheduledEffect(effectId)
        const isAsking = openForPeople(state).some((open) => open.effectId === effectId)
        const waiting = waitingCount(state, context.clock.now()) - (isAsking ? 1 : 0)
        const change = isThere ? { append: buffer.events, head: { waiting } } : undefined
        return { result: isThere, change }
      })
      return result
    },
  }
}
