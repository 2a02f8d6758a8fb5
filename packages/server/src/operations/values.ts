import { HttpError } from './http-error.ts'
import { done, json, operation, type OperationRoute } from './operation.ts'
import { answer, anything, mapOf, shape, maxText } from '@skein/base/shape'

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
