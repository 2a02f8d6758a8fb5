import type { JsonValue } from '@skein/base'
import { nextCronTime } from '../contract/cron.ts'
import { RuntimeError } from '../contract/error.ts'
import type { EffectState } from '../state/kernel-state.ts'
import type { EffectSchedule, ScheduledEffect, ThreadState } from '../contract/thread-state.ts'
import type { Registry } from '../definitions/resolved.ts'
import { allOverlaid, type FacadeBuffer, jsonCopy } from './facade-buffer.ts'
import type { ToolDefinition } from '../definitions/tool-definition.ts'

const MAX_ARGUMENT_BYTES = 256 * 1024
/** The latest time that a JavaScript Date can represent. */
const MAX_TIME = 8.64e15

/** The name of an effect that runs a tool (`queueTool`) begins with this text. */
const QUEUED_TOOL = 'tool:'

/** Returns the tool that an effect with this name runs; undefined if the effect runs no tool. */
export function queuedTool(
  { tools, effects }: Pick<Registry, 'tools' | 'effects'>,
  name: string,
): ToolDefinition | undefined {
  if (!name.startsWith(QUEUED_TOOL) || effects.has(name)) return undefined
  return tools.get(name.slice(QUEUED_TOOL.length))
}

type EffectMembers = Pick<
  ThreadState,
  'scheduleEffect' | 'getScheduledEffects' | 'removeScheduledEffect'
>

interface FacadeEffects extends EffectMembers {
  /**
   * Schedules the run of a tool as an effect that is due immediately. The caller has checked that the
   * tool may be queued.
   */
  queueTool(name: string, args: JsonValue): string
  clear(): void
}

/**
 * Creates the methods with which user code schedules effects, i.e. later work (`scheduleEffect` …). Reads include
 * changes that are not committed yet.
 */
export function facadeEffects(buffer: FacadeBuffer): FacadeEffects {
  const { kernel, environment, events } = buffer
  const pending = new Map<string, EffectState | null>()
  const all = () => allOverlaid(pending, kernel.effects)

  function remove(effectId: string): void {
    events.push({ type: 'effect_ended', at: buffer.at(), effectId, outcome: 'removed' })
    pending.set(effectId, null)
  }

  function schedule(name: string, args: JsonValue, when: number | EffectSchedule): string {
    const times = typeof when === 'number' ? { delayMs: when } : when
    const runAt = timeOf(name, times, environment.clock.now())
    const copy = jsonCopy(args, {
      subject: `The argument of the effect "${name}"`,
      code: 'EFFECT_INVALID',
      maxBytes: MAX_ARGUMENT_BYTES,
    })
    const { cron, timeZone, key } = times
    if (key !== undefined) {
      for (const [id, effect] of all()) if (effect.scheduled.key === key) remove(id)
    }
    const schedule = {
      type: 'effect_scheduled' as const,
      at: buffer.at(),
      effectId: environment.ids(),
      name,
      args: copy,
      runAt,
      cron,
      timeZone,
      key,
    }
    events.push(schedule)
    pending.set(schedule.effectId, {
      scheduled: schedule,
      runAt,
      run: 1,
      attempts: 0,
      runningEpoch: undefined,
      interruptId: undefined,
      late: undefined,
    })
    return schedule.effectId
  }

  return {
    scheduleEffect(name, args, when) {
      const definitions = environment.registry.effects
      if (!definitions.has(name))
        throw new RuntimeError(`There is no effect "${name}".`, {
          code: 'EFFECT_NOT_FOUND',
          hint:
            definitions.size > 0
              ? `Known effects: ${[...definitions.keys()].join(', ')}.`
              : 'None is defined.',
        })
      return schedule(name, args, when)
    },
    queueTool: (name, args) => schedule(`${QUEUED_TOOL}${name}`, args, 0),
    getScheduledEffects: (name) => scheduledEffects(all(), name),
    removeScheduledEffect(id) {
      if (!all().has(id)) return false
      remove(id)
      return true
    },
    clear: () => pending.clear(),
  }
}

/** Returns the effects of a thread in the form that users see, the next one first. */
export function scheduledEffects(
  effects: ReadonlyMap<string, EffectState>,
  name?: string,
): ScheduledEffect[] {
  return [...effects.values()]
    .filter(({ scheduled }) => name === undefined || scheduled.name === name)
    .sort((a, b) => (a.runAt < b.runAt ? -1 : a.runAt > b.runAt ? 1 : 0))
    .map(({ scheduled, runAt: at, attempts }) => {
      const { effectId: id, name: effect, args, cron, timeZone, key } = scheduled
      return { id, name: effect, args, at, cron, timeZone, key, attempts }
    })
}

function timeOf(name: string, when: EffectSchedule, now: number): string {
  const { delayMs, cron, timeZone, key } = when
  if ((delayMs === undefined) === (cron === undefined)) {
    throw invalid(name, 'has neither or both of delayMs and cron')
  }
  if (key !== undefined && (typeof key !== 'string' || key === '' || key.length > 256)) {
    throw invalid(name, 'has a key that is empty or longer than 256 characters')
  }
  if (timeZone !== undefined && (cron === undefined || typeof timeZone !== 'string')) {
    throw invalid(name, 'has a time zone that is no text, or no cron')
  }
  if (cron !== undefined) return new Date(nextCronTime(cron, now, timeZone)).toISOString()
  if (typeof delayMs !== 'number' || !(delayMs >= 0) || now + delayMs > MAX_TIME) {
    throw invalid(name, `has a delay of ${String(delayMs)} ms`)
  }
  return new Date(Math.ceil(now + delayMs)).toISOString()
}

function invalid(name: string, problem: string): RuntimeError {
  return new RuntimeError(`The schedule of the effect "${name}" ${problem}.`, {
    code: 'EFFECT_INVALID',
    hint: 'Give a delay in ms from 0, or { delayMs } or { cron, timeZone? }, each with an optional key.',
  })
}
