import type { JsonValue } from '@skein/base'
import { RuntimeError } from '../error.ts'
import type { Effect } from '../state.ts'
import type { EffectSchedule, ScheduledEffect, ThreadState } from '../thread-state.ts'
import { nextCronTime } from '../time/cron.ts'
import { allOverlaid, type FacadeBuffer, jsonCopy } from './buffer.ts'

const MAX_ARGUMENT_BYTES = 256 * 1024
/** The last time that a date can say. */
const MAX_TIME = 8.64e15

export type EffectMembers = Pick<
  ThreadState,
  'scheduleEffect' | 'getScheduledEffects' | 'removeScheduledEffect'
>

export interface FacadeEffects extends EffectMembers {
  clear(): void
}

/** Scheduled effects of a thread with what was scheduled or removed but not committed. */
export function facadeEffects(buffer: FacadeBuffer): FacadeEffects {
  const { kernel, environment, events } = buffer
  const pending = new Map<string, Effect | null>()
  const all = () => allOverlaid(pending, kernel.effects)

  function remove(effectId: string): void {
    events.push({ type: 'effect_ended', at: buffer.at(), effectId, outcome: 'removed' })
    pending.set(effectId, null)
  }

  return {
    scheduleEffect(name, args, when) {
      checkKnown(name, environment.registry.effects)
      const schedule = typeof when === 'number' ? { delayMs: when } : when
      const runAt = timeOf(name, schedule, environment.clock.now())
      const copy = argumentsOf(name, args)
      const { cron, key } = schedule
      if (key !== undefined) {
        for (const [id, effect] of all()) if (effect.scheduled.key === key) remove(id)
      }
      const scheduled = {
        type: 'effect_scheduled' as const,
        at: buffer.at(),
        effectId: environment.ids(),
        name,
        args: copy,
        runAt,
        cron,
        key,
      }
      events.push(scheduled)
      pending.set(scheduled.effectId, { scheduled, runAt, attempts: 0, runningEpoch: undefined })
      return scheduled.effectId
    },
    getScheduledEffects: (name) => scheduledEffects(all(), name),
    removeScheduledEffect(id) {
      if (!all().has(id)) return false
      remove(id)
      return true
    },
    clear: () => pending.clear(),
  }
}

/** Effects as users see them, the next one first. */
export function scheduledEffects(
  effects: ReadonlyMap<string, Effect>,
  name?: string,
): ScheduledEffect[] {
  return [...effects.values()]
    .filter(({ scheduled }) => name === undefined || scheduled.name === name)
    .sort((a, b) => (a.runAt < b.runAt ? -1 : a.runAt > b.runAt ? 1 : 0))
    .map(({ scheduled: { effectId: id, name: effect, args, cron, key }, runAt: at, attempts }) => ({
      id,
      name: effect,
      args,
      at,
      cron,
      key,
      attempts,
    }))
}

function checkKnown(name: string, known: ReadonlyMap<string, unknown>): void {
  if (known.has(name)) return
  throw new RuntimeError(`There is no effect "${name}".`, {
    code: 'EFFECT_NOT_FOUND',
    hint: known.size > 0 ? `Known effects: ${[...known.keys()].join(', ')}.` : 'None is defined.',
  })
}

function timeOf(name: string, { delayMs, cron, key }: EffectSchedule, now: number): string {
  if ((delayMs === undefined) === (cron === undefined)) {
    throw invalid(name, 'has neither or both of delayMs and cron')
  }
  if (key !== undefined && (typeof key !== 'string' || key === '' || key.length > 256)) {
    throw invalid(name, 'has a key that is empty or longer than 256 characters')
  }
  if (cron !== undefined) return new Date(nextCronTime(cron, now)).toISOString()
  if (typeof delayMs !== 'number' || !(delayMs >= 0) || now + delayMs > MAX_TIME) {
    throw invalid(name, `has a delay of ${String(delayMs)} ms`)
  }
  return new Date(Math.ceil(now + delayMs)).toISOString()
}

function argumentsOf(name: string, args: JsonValue): JsonValue {
  return jsonCopy(args, {
    subject: `The argument of the effect "${name}"`,
    code: 'EFFECT_INVALID',
    maxBytes: MAX_ARGUMENT_BYTES,
  })
}

function invalid(name: string, problem: string): RuntimeError {
  return new RuntimeError(`The schedule of the effect "${name}" ${problem}.`, {
    code: 'EFFECT_INVALID',
    hint: 'Give a delay in ms from 0, or { delayMs } or { cron }, each with an optional key.',
  })
}
