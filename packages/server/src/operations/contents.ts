import { HttpError } from './http-error.ts'
import { done, json, operation, type OperationRoute } from './operation.ts'
import { actorOf, type Principal, seesAllOwners } from './principal.ts'
import type { UserOf } from '@skein/runtime/serving'
import { ref, textMap } from './schemas.ts'
import {
  answer,
  anything,
  between,
  arrayOf,
  mapOf,
  choice,
  integer,
  nullable,
  number,
  shape,
  string,
  maxText,
} from '@skein/base/shape'

/** The operations on the values of a thread. */
export const valueOperations: readonly OperationRoute[] = [
  operation('listValues', {
    tag: 'values',
    summary: 'The durable values of the thread.',
    scope: 'threads:read',
    query: { prefix: maxText(512) },
    answers: [json('Values by key.', answer({ values: mapOf(anything) }))],
    run: async ({ runtime, thread, query }) => ({
      values: await runtime.threads.values.list(thread.id, query.prefix),
    }),
  }),
  operation('getValue', {
    tag: 'values',
    summary: 'One value.',
    scope: 'threads:read',
    answers: [json('The value.', answer({ value: anything }))],
    errors: ['VALUE_NOT_FOUND'],
    async run({ runtime, thread, params }) {
      const value = await runtime.threads.values.get(thread.id, params.key)
      if (value !== undefined) return { value }
      throw new HttpError('The thread has no value with this key.', { code: 'VALUE_NOT_FOUND' })
    },
  }),
  operation('setValue', {
    tag: 'values',
    summary: 'Sets a value.',
    scope: 'threads:write',
    probe: { body: { value: 1 } },
    body: { json: shape({ value: anything }) },
    answers: [done('The value is set.')],
    errors: ['VALUE_INVALID', 'THREAD_TERMINATED'],
    run: ({ runtime, thread, params, body }) =>
      runtime.threads.values.set(thread.id, params.key, body.value),
  }),
  operation('deleteValue', {
    tag: 'values',
    summary: 'Removes a value.',
    scope: 'threads:write',
    answers: [done('The value is removed.')],
    errors: ['VALUE_INVALID', 'THREAD_TERMINATED'],
    run: ({ runtime, thread, params }) => runtime.threads.values.set(thread.id, params.key, null),
  }),
]

/** The operations on the values of a user, which all threads of that user share. */
export const userOperations: readonly OperationRoute[] = [
  operation('listUserValues', {
    tag: 'users',
    summary: 'The values of a user, all of them or those whose keys begin with a text.',
    scope: 'threads:read',
    query: { prefix: maxText(512) },
    answers: [json('Values with their versions.', answer({ values: arrayOf(ref('UserValue')) }))],
    run: async ({ runtime, principal, params, query }) => ({
      values: await runtime.users.values.list(userOf(principal, params.user), query.prefix),
    }),
  }),
  operation('eraseUserValues', {
    tag: 'users',
    summary: 'Removes all values of a user, with their bytes.',
    scope: 'threads:write',
    answers: [json('How many values were removed.', answer({ erased: number }))],
    run: async ({ runtime, principal, params }) => ({
      erased: await runtime.users.values.erase(userOf(principal, params.user)),
    }),
  }),
  operation('getUserValue', {
    tag: 'users',
    summary: 'One value of a user.',
    scope: 'threads:read',
    answers: [json('The value with its version.', ref('UserValue'))],
    errors: ['VALUE_NOT_FOUND', 'VALUE_INVALID'],
    async run({ runtime, principal, params }) {
      const of = userOf(principal, params.user)
      const value = await runtime.users.values.get(of, params.key)
      if (value) return value
      throw new HttpError('The user has no value with this key.', { code: 'VALUE_NOT_FOUND' })
    },
  }),
  operation('setUserValue', {
    tag: 'users',
    summary:
      'Sets a value of a user; with `expectVersion` only if it has that version (null: none yet).',
    scope: 'threads:write',
    probe: { body: { value: 1 } },
    body: { json: shape({ value: anything, 'expectVersion?': nullable(integer) }) },
    answers: [json('The value with its version.', ref('UserValue'))],
    errors: ['VALUE_INVALID', 'STATE_CONFLICT'],
    async run({ runtime, principal, params, body: { value, expectVersion } }) {
      const of = userOf(principal, params.user)
      if (value === null)
        throw new HttpError('A value cannot be null.', {
          code: 'VALUE_INVALID',
          hint: 'DELETE removes a value.',
        })
      // `set` returns nothing if somebody removed the value right after it was set.
      const set = await runtime.users.values.set(of, params.key, value, { expectVersion })
      if (set) return set
      throw new HttpError('The value was removed meanwhile.', { code: 'STATE_CONFLICT' })
    },
  }),
  operation('deleteUserValue', {
    tag: 'users',
    summary: 'Removes a value of a user; with `expectVersion` only if it has that version.',
    scope: 'threads:write',
    query: { expectVersion: integer },
    answers: [done('The value is removed.')],
    errors: ['VALUE_INVALID', 'STATE_CONFLICT'],
    async run({ runtime, principal, params, query }) {
      const of = userOf(principal, params.user)
      const expectVersion = query.expectVersion === 0 ? null : query.expectVersion
      await runtime.users.values.set(of, params.key, null, { expectVersion })
    },
  }),
]

/**
 * Returns the user that a request is about. A client that belongs to a user may name only that user, unless it
 * may see the threads of all users. For every other name the error is the same, whether the user exists or not.
 */
function userOf(principal: Principal, user: string): UserOf {
  const { tenant } = principal
  if (seesAllOwners(principal) || principal.user === user) return { tenant, user }
  throw new HttpError('This key belongs to another user.', {
    code: 'SCOPE_MISSING',
    hint: 'Name the user of the key, or use a key with the scope threads:all.',
  })
}

/** The operations on the environment variables of a thread. */
export const envOperations: readonly OperationRoute[] = [
  operation('listEnv', {
    tag: 'env',
    summary:
      'The variables of the thread: names, types, and the values of those that are no secret.',
    scope: 'threads:read',
    answers: [json('The variables.', answer({ variables: arrayOf(ref('Variable')) }))],
    async run({ runtime, thread }) {
      const variables = await runtime.threads.env.list(thread.id)
      // Secrets are removed here too, in case an implementation of the runtime returns them.
      return {
        variables: variables.map(({ name, type, value }) => ({
          name,
          type,
          value: type === 'text' ? value : undefined,
        })),
      }
    },
  }),
  operation('setEnv', {
    tag: 'env',
    summary: 'Sets a variable. A secret can never be read again.',
    scope: 'env:write',
    probe: { body: { value: 'x' } },
    body: { json: shape({ value: maxText(65_536), 'type?': choice('text', 'secret') }) },
    answers: [done('The variable is set.')],
    errors: ['ENV_INVALID', 'THREAD_TERMINATED'],
    run: ({ runtime, thread, params, body: { value, type } }) =>
      runtime.threads.env.set(thread.id, params.name, value, { type }),
  }),
  operation('deleteEnv', {
    tag: 'env',
    summary: 'Removes a variable.',
    scope: 'env:write',
    answers: [done('The variable is removed.')],
    errors: ['ENV_INVALID', 'THREAD_TERMINATED'],
    run: ({ runtime, thread, params }) => runtime.threads.env.set(thread.id, params.name, null),
  }),
]

/**
 * The operations on requests for variables: a child that lacks variables is created once they are
 * provided (Standard Agents §7.8).
 */
export const variableOperations: readonly OperationRoute[] = [
  operation('getVariablesRequest', {
    tag: 'variables',
    summary: 'Which variables a child needs and which are missing. Names only.',
    scope: 'threads:read',
    isAlsoAtRoot: true,
    answers: [json('The names.', ref('VariablesRequest'))],
    errors: ['REQUEST_NOT_FOUND'],
    run: ({ runtime, thread, params }) =>
      runtime.threads.variables.get(thread.id, params.requestId),
  }),
  operation('provideVariables', {
    tag: 'variables',
    summary: 'Stores the values and creates the child with its original payload. Once.',
    scope: 'env:write',
    isAlsoAtRoot: true,
    probe: { body: {} },
    body: { json: textMap },
    answers: [json('The id of the child.', answer({ reference: string }), 201)],
    errors: [
      'REQUEST_NOT_FOUND',
      'REQUEST_EXPIRED',
      'ALREADY_ANSWERED',
      'VARIABLES_MISSING',
      'THREAD_TERMINATED',
    ],
    run: ({ runtime, thread, params, body, principal }) =>
      runtime.threads.variables.provide(thread.id, params.requestId, body, {
        by: actorOf(principal),
      }),
  }),
]

const YEAR_MS = 31_536_000_000

/** The operations on the effects (scheduled work) of a thread. */
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
