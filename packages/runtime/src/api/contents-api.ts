import { facadeValues } from '../thread/values.ts'
import { facadeFiles } from '../thread/facade-files.ts'
import type { ThreadEffects, ThreadEnv, ThreadFiles, ThreadValues } from '../contract/runtime-api.ts'
import { type ApiContext, load } from './api-context.ts'
import { bufferOf, editThread, editWith } from './edit-thread.ts'
import { envSet, isSecret } from '../thread/env.ts'
import { inheritedEnv } from '../thread/changes.ts'
import { RuntimeError } from '../contract/error.ts'
import type { EffectScheduled } from '../contract/event.ts'
import { facadeEffects, scheduledEffects } from '../thread/effects.ts'
import { openForPeople, waitingCount } from '../state/questions.ts'

/** Creates the file functions of the API. They make the same checks as the file functions of tools. */
export function filesApi(context: ApiContext): ThreadFiles {
  const open = async (threadId: string) =>
    facadeFiles(bufferOf(context, (await load(context, threadId)).state))
  return {
    list: async (threadId, prefix) => (await open(threadId)).listFiles(prefix),
    stat: async (threadId, path) => (await open(threadId)).statFile(path),
    async read(threadId, path) {
      const files = await open(threadId)
      const [normal = path] = files.existing([path])
      const stat = files.statFile(normal)!
      return { stat, bytes: await files.readFile(normal) }
    },
    write: (threadId, path, bytes, { mediaType } = {}) =>
      editWith(context, { threadId, point: 'write_file' }, (buffer) =>
        facadeFiles(buffer).writeFile(path, bytes, { mediaType: mediaType || undefined }),
      ),
    remove: (threadId, path) =>
      editWith(context, { threadId, point: 'remove_file' }, (buffer) => {
        const files = facadeFiles(buffer)
        if (!files.statFile(path)) return false
        files.removeFile(path)
        return true
      }),
    move: (threadId, from, to) =>
      editWith(context, { threadId, point: 'move_file' }, (buffer) => {
        const files = facadeFiles(buffer)
        files.moveFile(from, to)
        return files.statFile(to)!
      }),
  }
}

/** Creates the value functions of the API. They make the same checks as the value functions of tools. */
export function valuesApi(context: ApiContext): ThreadValues {
  const open = async (threadId: string) =>
    facadeValues(bufferOf(context, (await load(context, threadId)).state))
  return {
    list: async (threadId, prefix) => (await open(threadId)).listValues(prefix),
    get: async (threadId, key) => (await open(threadId)).getValue(key),
    set: (threadId, key, value) =>
      editWith(context, { threadId, point: 'set_value' }, (buffer) => {
        // Removing a value that does not exist writes no event.
        if (value === null && !buffer.kernel.values.has(key)) return
        facadeValues(buffer).setValue(key, value)
      }),
  }
}

/**
 * Creates the variable functions of the API. A new value is also written, in the same commit, to the
 * descendants that inherit the variable and have not ended.
 */
export function envApi(context: ApiContext): ThreadEnv {
  const parts = { ...context, load: async (id: string) => (await context.folds.load(id))?.state }
  return {
    async list(threadId) {
      const { state } = await load(context, threadId)
      return [...state.env]
        .toSorted(([a], [b]) => (a < b ? -1 : 1))
        .map(([name, { type, value }]) => ({
          name,
          type,
          value: type === 'text' ? value : undefined,
        }))
    },
    async set(threadId, name, value, { type } = {}) {
      await editThread(context, { threadId, point: 'set_env' }, async (thread) => {
        const { state } = thread
        if (value === null && !state.env.has(name)) return { result: undefined }
        const valueType = isSecret(context, state, name) ? 'secret' : (type ?? 'text')
        const isScoped = state.env.get(name)?.isScoped ?? false
        const setting = { name, value, valueType }
        const others = isScoped ? [] : await inheritedEnv(parts, thread.head, setting)
        const event = { ...setting, threadId, vault: context.vault, at: context.at(), isScoped }
        return { result: undefined, change: { append: [envSet(event)] }, others }
      })
    },
  }
}

/** Creates the functions for scheduled effects (work at a later time), with the same checks as those of tools. */
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
