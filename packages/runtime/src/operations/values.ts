import type { JsonValue } from '@skein/base'
import { HttpError } from './http-error.ts'
import { jsonResponse, noContent, type Route, type ThreadCall } from './operation.ts'
import { answer, shape, text } from './schemas.ts'

const path = '/threads/{threadId}/values/{key*}'
const errors = ['VALUE_INVALID', 'THREAD_TERMINATED'] as const

export const valueRoutes: readonly Route[] = [
  {
    id: 'listValues',
    method: 'GET',
    path: '/threads/{threadId}/values',
    tag: 'values',
    summary: 'Durable values of the thread.',
    scope: 'threads:read',
    addresses: 'thread',
    probe: {},
    query: { prefix: text(512) },
    answers: [
      {
        status: 200,
        description: 'Values by key.',
        schema: answer({ values: { type: 'object' } }),
      },
    ],
    async handle({ runtime, thread, query }) {
      const { prefix } = query as { prefix?: string } // checked by the schema
      return jsonResponse({ values: await runtime.threads.values.list(thread.id, prefix) })
    },
  },
  {
    id: 'getValue',
    method: 'GET',
    path,
    tag: 'values',
    summary: 'One value.',
    scope: 'threads:read',
    addresses: 'thread',
    probe: {},
    answers: [{ status: 200, description: 'The value.', schema: answer({ value: {} }) }],
    errors: ['VALUE_NOT_FOUND'],
    async handle(call) {
      const value = await call.runtime.threads.values.get(call.thread.id, call.params['key']!)
      if (value !== undefined) return jsonResponse({ value })
      throw new HttpError('There is no such value in this thread.', { code: 'VALUE_NOT_FOUND' })
    },
  },
  {
    id: 'setValue',
    method: 'PUT',
    path,
    tag: 'values',
    summary: 'Sets a value.',
    scope: 'threads:write',
    addresses: 'thread',
    probe: { body: { value: 1 } },
    body: { json: shape({ value: {} }) },
    answers: [{ status: 204, description: 'It is set.' }],
    errors,
    handle: (call) => set(call, (call.body as { value: JsonValue }).value), // checked by the schema
  },
  {
    id: 'deleteValue',
    method: 'DELETE',
    path,
    tag: 'values',
    summary: 'Removes a value.',
    scope: 'threads:write',
    addresses: 'thread',
    probe: {},
    answers: [{ status: 204, description: 'It is gone.' }],
    errors,
    handle: (call) => set(call, null),
  },
]

async function set(call: ThreadCall, value: JsonValue): Promise<Response> {
  await call.runtime.threads.values.set(call.thread.id, call.params['key']!, value)
  return noContent()
}
