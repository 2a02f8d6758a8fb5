import { done, json, operation, type OperationRoute } from './operation.ts'
import { ref } from './schemas.ts'
import { answer, arrayOf, choice, shape, maxText } from '@skein/base/shape'

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
