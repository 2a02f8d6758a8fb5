import { RuntimeError } from '../error.ts'
import type { EffectScheduled } from '../event.ts'
import type { ThreadEffects } from '../runtime-api.ts'
import { facadeEffects, scheduledEffects } from '../thread/effects.ts'
import { editThread, load, type ApiContext } from './api-context.ts'
import { bufferOf } from './facade-edit.ts'

/** Scheduled effects of threads, by the rules that tools have. */
export function effectsApi(context: ApiContext): ThreadEffects {
  return {
    list: async (threadId) => scheduledEffects((await load(context, threadId)).state.effects),
    async schedule(threadId, name, args, when) {
      const target = { threadId, point: 'schedule_effect' }
      const { result } = await editThread(context, target, ({ state }) => {
        const buffer = bufferOf(context, state)
        const id = facadeEffects(buffer).scheduleEffect(name, args, when)
        const { runAt } = buffer.events.at(-1) as EffectScheduled // it was written just now
        return { result: id, change: { append: buffer.events, wake: { by: Date.parse(runAt) } } }
      })
      return result
    },
    async runNow(threadId, effectId) {
      await editThread(context, { threadId, point: 'run_effect_now' }, ({ state }) => {
        const effect = state.effects.get(effectId)
        if (!effect) throw effectNotFound(threadId, effectId)
        if (effect.runningEpoch !== undefined) return { result: undefined }
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
        return { result: isThere, ...(isThere && { change: { append: buffer.events } }) }
      })
      return result
    },
  }
}

function effectNotFound(threadId: string, effectId: string): RuntimeError {
  return new RuntimeError(`Thread ${threadId} has no scheduled effect ${effectId}.`, {
    code: 'EFFECT_NOT_FOUND',
    hint: 'It may have run already, or was removed.',
  })
}
