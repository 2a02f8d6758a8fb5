import { HttpError } from './http-error.ts'
import { done, json, operation, type OperationRoute } from './operation.ts'
import { type Principal, seesAllOwners } from './principal.ts'
import type { UserOf } from '@skein/runtime/serving'
import { ref } from './schemas.ts'
import {
  answer,
  anything,
  arrayOf,
  integer,
  nullable,
  number,
  shape,
  maxText,
} from '@skein/base/shape'

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
      // `set` returns nothing if the value was removed right after it was set.
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
