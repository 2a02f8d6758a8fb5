import { jsonResponse, noContent, type Route } from './operation.ts'
import { actorOf } from './principal.ts'
import { ref, shape, text } from './schemas.ts'

const done = [{ status: 204, description: 'Done.' }]
const flag = { type: 'boolean' }

export const controlRoutes: readonly Route[] = [
  {
    id: 'stopThread',
    method: 'POST',
    path: '/threads/{threadId}/stop',
    tag: 'control',
    summary: 'Stops what runs. What was said stays; a message or a resume goes on.',
    scope: 'threads:write',
    addresses: 'thread',
    probe: {},
    body: { json: shape({ 'afterStep?': flag }), isOptional: true },
    answers: done,
    errors: ['THREAD_TERMINATED'],
    async handle({ runtime, thread, body, principal }) {
      const options = body as { afterStep?: boolean } // checked by the schema
      await runtime.threads.stop(thread.id, { ...options, by: actorOf(principal) })
      return noContent()
    },
  },
  {
    id: 'resumeThread',
    method: 'POST',
    path: '/threads/{threadId}/resume',
    tag: 'control',
    summary: 'Goes on after a stop, a failure or a limit.',
    scope: 'threads:write',
    addresses: 'thread',
    probe: {},
    body: { json: shape({ 'side?': { type: 'string', enum: ['a', 'b'] } }), isOptional: true },
    answers: done,
    errors: ['THREAD_TERMINATED'],
    async handle({ runtime, thread, body, principal }) {
      const options = body as { side?: 'a' | 'b' } // checked by the schema
      await runtime.threads.resume(thread.id, { ...options, by: actorOf(principal) })
      return noContent()
    },
  },
  {
    id: 'terminateThread',
    method: 'POST',
    path: '/threads/{threadId}/terminate',
    tag: 'control',
    summary: 'Ends a thread and its descendants for good. The history stays.',
    scope: 'threads:write',
    addresses: 'thread',
    probe: {},
    body: { json: shape({ 'detach?': flag }), isOptional: true },
    answers: done,
    async handle({ runtime, thread, body, principal }) {
      const options = body as { detach?: boolean } // checked by the schema
      await runtime.threads.terminate(thread.id, { ...options, by: actorOf(principal) })
      return noContent()
    },
  },
  {
    id: 'eraseThread',
    method: 'POST',
    path: '/threads/{threadId}/erase',
    tag: 'control',
    summary: 'Removes the contents; the skeleton and the audit log stay.',
    scope: 'threads:write',
    addresses: 'thread',
    probe: {},
    body: { json: shape({}), isOptional: true },
    answers: done,
    async handle({ runtime, thread, principal }) {
      await runtime.threads.erase(thread.id, { by: actorOf(principal) })
      return noContent()
    },
  },
  {
    id: 'forkThread',
    method: 'POST',
    path: '/threads/{threadId}/fork',
    tag: 'control',
    summary: 'A new thread with the history up to and with a message. Nothing runs again.',
    scope: 'threads:write',
    addresses: 'thread',
    probe: {},
    body: { json: shape({ 'upTo?': text(200), 'title?': text(256) }), isOptional: true },
    answers: [{ status: 201, description: 'The new thread.', schema: ref('Thread') }],
    errors: ['MESSAGE_NOT_FOUND'],
    async handle({ runtime, thread, body, principal: { user } }) {
      const options = body as { upTo?: string; title?: string } // checked by the schema
      const owner = user === undefined ? {} : { owner: user }
      return jsonResponse(await runtime.threads.fork(thread.id, { ...options, ...owner }), {
        status: 201,
      })
    },
  },
  {
    id: 'getResult',
    method: 'GET',
    path: '/threads/{threadId}/result',
    tag: 'control',
    summary: 'Waits until the thread is parked, and says how its session ended.',
    scope: 'threads:read',
    addresses: 'thread',
    probe: {},
    query: { waitMs: { type: 'integer', minimum: 0, maximum: 60_000 } },
    answers: [
      {
        status: 200,
        description: 'How it ended, or what it waits for.',
        schema: ref('SessionResult'),
      },
      { status: 204, description: 'It still runs: ask again.' },
    ],
    async handle({ runtime, thread, query, request, services }) {
      const { waitMs = 30_000 } = query as { waitMs?: number } // checked by the schema
      const late = new AbortController()
      const timer = services.timers.set(waitMs, () => late.abort())
      const signal = AbortSignal.any([late.signal, request.signal])
      try {
        return jsonResponse(await runtime.threads.settled(thread.id, { signal }))
      } catch (error) {
        if (signal.aborted) return noContent()
        throw error
      } finally {
        services.timers.clear(timer)
      }
    },
  },
]
