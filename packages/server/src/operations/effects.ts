import { HttpError } from './http-error.ts'
import { done, json, operation, type OperationRoute } from './operation.ts'
import { ref } from './schemas.ts'
import { answer, anything, between, arrayOf, shape, string, maxText } from '@skein/base/shape'

const YEAR_MS = 31_536_000_000

/** The operations on the effects of a thread. */
export const effectOperations: readonly OperationRoute[] = [
  operation('listEffects', {
    tag: 'effects',
    summary: 'Scheduled work.',
    scope: 'threads:read',
    answers: [json('What is scheduled.', answer({ effects: arrayOf(ref('Effect')) }))],
    run: async ({ runtime, thread }) => ({
      effects: await runtime.threads.effects.list(thread.id),
    }),
  }),
  operation('scheduleEffect', {
    tag: 'effects',
    summary: 'Schedules an effect: once after a delay, or by a calendar.',
    scope: 'threads:write',
    probe: { body: { name: 'remind', delayMs: 60_000 } },
    body: {
      json: shape({
        name: maxText(200),
        'args?': anything,
        'delayMs?': between(0, YEAR_MS),
        'cron?': maxText(200),
        'timeZone?': maxText(100),
        'key?': maxText(200),
      }),
    },
    answers: [json('The effect is scheduled.', answer({ id: string }), 201)],
    errors: ['EFFECT_NOT_FOUND', 'EFFECT_INVALID', 'THREAD_TERMINATED'],
    async run({ runtime, thread, body: { name, args = {}, ...when } }) {
      return { id: await runtime.threads.effects.schedule(thread.id, name, args, when) }
    },
  }),
  operation('runEffect', {
    tag: 'effects',
    summary: 'Runs a scheduled effect now instead of later.',
    scope: 'threads:write',
    body: { json: shape({}), isOptional: true },
    answers: [done('The effect will run at once.', 202)],
    errors: ['EFFECT_NOT_FOUND', 'THREAD_TERMINATED'],
    run: ({ runtime, thread, params }) =>
      runtime.threads.effects.runNow(thread.id, params.effectId),
  }),
  operation('deleteEffect', {
    tag: 'effects',
    summary: 'Takes an effect off the schedule.',
    scope: 'threads:write',
    answers: [done('The effect is removed.')],
    errors: ['EFFECT_NOT_FOUND', 'THREAD_TERMINATED'],
    async run({ runtime, thread, params }) {
      if (await runtime.threads.effects.remove(thread.id, params.effectId)) return
      throw new HttpError('The thread has no scheduled effect with this id.', {
        code: 'EFFECT_NOT_FOUND',
      })
    },
  }),
]
