import { HttpError } from '../http-error.ts'
import { jsonResponse } from '../json-response.ts'
import type { Route } from '../route.ts'
import { ref } from '../schemas.ts'

const LINES = 'application/jsonl'

export const transferRoutes: readonly Route[] = [
  {
    id: 'exportThread',
    method: 'GET',
    path: '/threads/{threadId}/export',
    tag: 'transfer',
    summary: 'The thread as JSON lines that can be imported, or as a ThreadProtocol document.',
    scope: 'threads:read',
    addresses: 'thread',
    probe: {},
    query: { format: { type: 'string', enum: ['jsonl', 'thread'] } },
    answers: [
      { status: 200, description: 'The log.', mediaType: LINES, schema: { type: 'string' } },
      {
        status: 200,
        description: 'The ThreadProtocol document.',
        schema: { type: 'object', required: ['version', 'thread_id', 'turns'] },
      },
    ],
    async handle({ runtime, thread, query, request }) {
      const wantsJson = /^application\/json\b/.test(request.headers.get('accept') ?? '')
      const { format = wantsJson ? 'thread' : 'jsonl' } = query
      if (format === 'thread') return jsonResponse(await runtime.threads.document(thread.id))
      return new Response(await runtime.threads.export(thread.id), {
        headers: {
          'content-type': `${LINES}; charset=utf-8`,
          'content-disposition': `attachment; filename="thread.jsonl"`,
          vary: 'accept',
        },
      })
    },
  },
  {
    id: 'importThread',
    method: 'POST',
    path: '/threads/import',
    tag: 'transfer',
    summary: 'A new thread from exported JSON lines.',
    // A log can hold anything, decisions of other people included; that is not for everybody to write.
    scope: 'admin',
    addresses: 'nothing',
    body: { bytes: 'lines' },
    answers: [{ status: 201, description: 'The new thread.', schema: ref('Thread') }],
    async handle({ runtime, bytes, principal }) {
      const { tenant, user } = principal
      const owner = user === undefined ? {} : { owner: user }
      const thread = await runtime.threads.import(decode(bytes), { tenant, ...owner })
      return jsonResponse(thread, { status: 201 })
    },
  },
]

function decode(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch (cause) {
    throw new HttpError('The body is not UTF-8.', { code: 'BODY_INVALID', cause })
  }
}
