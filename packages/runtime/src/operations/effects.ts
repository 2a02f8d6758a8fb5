import type { JsonValue } from '@skein/base'
import { HttpError } from './http-error.ts'
import { jsonResponse, noContent, type Route } from './operation.ts'
import { answer, listOf, ref, shape, text } from './schemas.ts'

interface ScheduleBody {
  readonly name: string
  readonly args?: JsonValue
  readonly delayMs?: number
  readonly cron?: string
  readonly key?: string
}

export const effectRoutes: readonly Route[] = [
  {
    id: 'listEffects',
    method: 'GET',
    path: '/threads/{threadId}/effects',
    tag: 'effects',
    summary: 'Scheduled work.',
    scope: 'threads:read',
    addresses: 'thread',
    probe: {},
    answers: [
      {
        status: 200,
        description: 'What is scheduled.',
        schema: answer({ effects: listOf(ref('Effect')) }),
      },
    ],
    handle: async ({ runtime, thread }) =>
      jsonResponse({ effects: await runtime.threads.effects.list(thread.id) }),
  },
  {
    id: 'scheduleEffect',
    method: 'POST',
    path: '/threads/{threadId}/effects',
    tag: 'effects',
    summary: 'Schedules an effect: once after a delay, or by a calendar.',
    scope: 'threads:write',
    addresses: 'thread',
    probe: { body: { name: 'remind', delayMs: 60_000 } },
    body: {
      json: shape({
        name: text(200),
        'args?': {},
        'delayMs?': { type: 'integer', minimum: 0, maximum: 31_536_000_000 },
        'cron?': text(200),
        'key?': text(200),
      }),
    },
    answers: [
      {
        status: 201,
        description: 'It is scheduled.',
        schema: answer({ id: { type: 'string' } }),
      },
    ],
    errors: ['EFFECT_NOT_FOUND', 'EFFECT_INVALID', 'THREAD_TERMINATED'],
    async handle({ runtime, thread, body }) {
      const { name, args = {}, ...when } = body as unknown as ScheduleBody // checked by the schema
      const id = await runtime.threads.effects.schedule(thread.id, name, args, when)
      return jsonResponse({ id }, { status: 201 })
    },
  },
  {
    id: 'runEffect',
    method: 'POST',
    path: '/threads/{threadId}/effects/{effectId}/run',
    tag: 'effects',
    summary: 'Runs it now instead of later.',
    scope: 'threads:write',
    addresses: 'thread',
    probe: {},
    body: { json: shape({}), isOptional: true },
    answers: [{ status: 202, description: 'It will run at once.' }],
    errors: ['EFFECT_NOT_FOUND', 'THREAD_TERMINATED'],
    async handle({ runtime, thread, params }) {
      await runtime.threads.effects.runNow(thread.id, params['effectId']!)
      return new Response(null, { status: 202 })
    },
  },
  {
    id: 'deleteEffect',
    method: 'DELETE',
    path: '/threads/{threadId}/effects/{effectId}',
    tag: 'effects',
    summary: 'Takes it off the schedule.',
    scope: 'threads:write',
    addresses: 'thread',
    probe: {},
    answers: [{ status: 204, description: 'It is gone.' }],
    errors: ['EFFECT_NOT_FOUND', 'THREAD_TERMINATED'],
    async handle({ runtime, thread, params }) {
      if (await runtime.threads.effects.remove(thread.id, params['effectId']!)) return noContent()
      throw new HttpError('No such effect is scheduled.', { code: 'EFFECT_NOT_FOUND' })
    },
  },
]
