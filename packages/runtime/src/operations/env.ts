import { jsonResponse, noContent, type Route } from './operation.ts'
import { answer, listOf, ref, shape, text } from './schemas.ts'

const path = '/threads/{threadId}/env/{name}'
const errors = ['ENV_INVALID', 'THREAD_TERMINATED'] as const

export const envRoutes: readonly Route[] = [
  {
    id: 'listEnv',
    method: 'GET',
    path: '/threads/{threadId}/env',
    tag: 'env',
    summary: 'Variables of the thread: names, types, and values of those that are no secret.',
    scope: 'threads:read',
    addresses: 'thread',
    probe: {},
    answers: [
      {
        status: 200,
        description: 'The variables.',
        schema: answer({ variables: listOf(ref('Variable')) }),
      },
    ],
    async handle({ runtime, thread }) {
      const variables = await runtime.threads.env.list(thread.id)
      return jsonResponse({
        variables: variables.map(({ name, type, value }) => ({
          name,
          type,
          ...(type === 'text' && value !== undefined && { value }),
        })),
      })
    },
  },
  {
    id: 'setEnv',
    method: 'PUT',
    path,
    tag: 'env',
    summary: 'Sets a variable. A secret can never be read again.',
    scope: 'env:write',
    addresses: 'thread',
    probe: { body: { value: 'x' } },
    body: {
      json: shape({
        value: text(65_536),
        'type?': { type: 'string', enum: ['text', 'secret'] },
      }),
    },
    answers: [{ status: 204, description: 'It is set.' }],
    errors,
    async handle({ runtime, thread, params, body }) {
      const { value, type } = body as { value: string; type?: 'text' | 'secret' } // checked by the schema
      const options = type === undefined ? {} : { type }
      await runtime.threads.env.set(thread.id, params['name']!, value, options)
      return noContent()
    },
  },
  {
    id: 'deleteEnv',
    method: 'DELETE',
    path,
    tag: 'env',
    summary: 'Removes a variable.',
    scope: 'env:write',
    addresses: 'thread',
    probe: {},
    answers: [{ status: 204, description: 'It is gone.' }],
    errors,
    async handle({ runtime, thread, params }) {
      await runtime.threads.env.set(thread.id, params['name']!, null)
      return noContent()
    },
  },
]
