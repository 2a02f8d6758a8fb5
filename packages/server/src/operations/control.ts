import { invalidInput } from './http-error.ts'
import { done, json, operation, type OperationRoute } from './operation.ts'
import { actorOf } from './principal.ts'
import { ref, side } from './schemas.ts'
import { between, boolean, eitherOf, maxText, shape } from '@skein/base/shape'
import { toSendMessage } from './messages.ts'

/** The operations that stop, resume, end and copy threads, and wait for their results. */
export const controlOperations: readonly OperationRoute[] = [
  operation('stopThread', {
    tag: 'control',
    summary: 'Stops the run. Its messages stay; a new message or a resume continues the thread.',
    scope: 'threads:write',
    body: { json: shape({ 'afterStep?': boolean }), isOptional: true },
    answers: [done('Done.')],
    errors: ['THREAD_TERMINATED'],
    run: ({ runtime, thread, body, principal }) =>
      runtime.threads.stop(thread.id, { ...body, by: actorOf(principal) }),
  }),
  operation('resumeThread', {
    tag: 'control',
    summary: 'Continues the thread after a stop, a failure or a limit.',
    scope: 'threads:write',
    body: { json: shape({ 'side?': side }), isOptional: true },
    answers: [done('Done.')],
    errors: ['THREAD_TERMINATED'],
    run: ({ runtime, thread, body, principal }) =>
      runtime.threads.resume(thread.id, { ...body, by: actorOf(principal) }),
  }),
  operation('terminateThread', {
    tag: 'control',
    summary: 'Ends a thread and its descendants for good. The history stays.',
    scope: 'threads:write',
    body: { json: shape({ 'detach?': boolean }), isOptional: true },
    answers: [done('Done.')],
    run: ({ runtime, thread, body, principal }) =>
      runtime.threads.terminate(thread.id, { ...body, by: actorOf(principal) }),
  }),
  operation('eraseThread', {
    tag: 'control',
    summary: 'Removes the contents; the skeleton and the audit log stay.',
    scope: 'threads:write',
    body: { json: shape({}), isOptional: true },
    answers: [done('Done.')],
    run: ({ runtime, thread, principal }) =>
      runtime.threads.erase(thread.id, { by: actorOf(principal) }),
  }),
  operation('forkThread', {
    tag: 'control',
    summary:
      'A new thread with the history up to and with the message `upTo`, or before the message `before`. Nothing of it runs again. With `message` it is sent there immediately; with `send` alone the last message is answered again.',
    scope: 'threads:write',
    body: {
      json: shape({
        'upTo?': maxText(200),
        'before?': maxText(200),
        'title?': maxText(256),
        'message?': eitherOf(maxText(1_000_000), ref('SendMessage')),
        'send?': boolean,
      }),
      isOptional: true,
    },
    answers: [
      json('The new thread, and what the original did after this place.', ref('ForkedThread'), 201),
    ],
    errors: [
      'MESSAGE_NOT_FOUND',
      'FILE_NOT_FOUND',
      'FILE_PATH_INVALID',
      'SPENDING_LIMIT',
      'PLAYGROUND_OFF',
    ],
    run({ runtime, thread, body: { message, send, ...rest }, principal, services }) {
      if (message !== undefined && send === false)
        throw invalidInput('A message of a fork is sent immediately; leave it out.', 'body.message')
      return runtime.threads.fork(thread.id, {
        ...rest,
        owner: principal.user,
        message: message === undefined ? undefined : toSendMessage(message, principal, services),
        isContinued: send,
      })
    },
  }),
  operation('getResult', {
    tag: 'control',
    summary: 'Waits until the thread is parked, and says how its session ended.',
    scope: 'threads:read',
    query: { waitMs: between(0, 60_000) },
    answers: [
      json('How the session ended, or what it waits for.', ref('SessionResult')),
      done('The thread still runs: ask again.'),
    ],
    async run({ runtime, thread, query: { waitMs = 30_000 }, request, services }) {
      const late = new AbortController()
      const timer = services.timers.set(waitMs, () => late.abort())
      const signal = AbortSignal.any([late.signal, request.signal])
      try {
        return await runtime.threads.settled(thread.id, { signal })
      } catch (error) {
        if (signal.aborted) return undefined
        throw error
      } finally {
        services.timers.clear(timer)
      }
    },
  }),
]
