import { type AuditPage, nextTurn } from '@skein/runtime/serving'
import type { Threads } from '@skein/runtime'
import { HttpError } from './http-error.ts'
import { json, jsonResponse, operation, raw, type OperationRoute } from './operation.ts'
import { ref } from './schemas.ts'
import { answer, arrayOf, maxText, between, choice } from '@skein/base/shape'
import { publicEvent, threadView } from '@skein/runtime/view'
import { withoutLongResults } from './event-json.ts'
import { viewHtml } from './view-html.ts'

const LINES = 'application/jsonl'

/** The operations that read, export and import the logs of threads. */
export const logOperations: readonly OperationRoute[] = [
  operation('listEvents', {
    tag: 'events',
    summary:
      'The log, in order. With `maxResultChars`, longer results of tools are cut to their beginning, and such an event has `isCut`; ask for it alone to get it whole.',
    scope: 'threads:read',
    query: {
      after: between(0, Number.MAX_SAFE_INTEGER),
      limit: between(1, 1000),
      maxResultChars: between(100, 10_000_000),
    },
    answers: [json('Events with their numbers.', answer({ events: arrayOf(ref('StoredEvent')) }))],
    async run({ runtime, thread, query: { after = 0, limit = 200, maxResultChars } }) {
      const events = await runtime.threads.events(thread.id, { after, limit })
      return {
        events: events.map(({ seq, event }) => {
          const shortEvent = maxResultChars && withoutLongResults(event, maxResultChars)
          return shortEvent
            ? { seq, event: publicEvent(shortEvent), isCut: true }
            : { seq, event: publicEvent(event) }
        }),
      }
    },
  }),
  operation('exportThread', {
    tag: 'transfer',
    summary:
      'The thread as JSON lines that can be imported, as a ThreadProtocol document, or as one HTML file.',
    scope: 'threads:read',
    query: { format: choice('jsonl', 'thread', 'html') },
    answers: [
      raw('The log.', LINES, { type: 'string' }),
      raw('The ThreadProtocol document.', 'application/json', {
        type: 'object',
        required: ['version', 'thread_id', 'turns'],
      }),
      raw('The conversation to read, without scripts.', 'text/html', { type: 'string' }),
    ],
    async run({ runtime, thread, query, request }) {
      const wantsJson = /^application\/json\b/.test(request.headers.get('accept') ?? '')
      const { format = wantsJson ? 'thread' : 'jsonl' } = query
      if (format === 'thread') return jsonResponse(await runtime.threads.document(thread.id))
      if (format === 'html') {
        const { title, firstWords } = thread
        const view = threadView(await runtime.threads.events(thread.id))
        return new Response(viewHtml(view, title ?? firstWords ?? thread.id), {
          headers: {
            'content-type': 'text/html; charset=utf-8',
            'content-disposition': `attachment; filename="thread.html"`,
          },
        })
      }
      return new Response(textStream(runtime.threads.exportLines(thread.id)), {
        headers: {
          'content-type': `${LINES}; charset=utf-8`,
          'content-disposition': `attachment; filename="thread.jsonl"`,
          vary: 'accept',
        },
      })
    },
  }),
  operation('importThread', {
    tag: 'transfer',
    summary: 'A new thread from exported JSON lines.',
    // An imported log can contain anything, even decisions of other people, so importing requires `admin`.
    scope: 'admin',
    body: { bytes: 'lines' },
    answers: [json('The new thread.', ref('Thread'), 201)],
    run({ runtime, bytes, principal: { tenant, user } }) {
      let lines: string
      try {
        lines = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
      } catch (cause) {
        throw new HttpError('The body is not UTF-8.', { code: 'BODY_INVALID', cause })
      }
      return runtime.threads.import(lines, { tenant, owner: user })
    },
  }),
  operation('listLogs', {
    tag: 'logs',
    summary: 'Requests to models.',
    scope: 'logs:read',
    answers: [
      json('One entry per request, the oldest first.', answer({ logs: arrayOf(ref('ModelLog')) })),
    ],
    run: async ({ runtime, thread }) => ({ logs: await runtime.threads.logs(thread.id) }),
  }),
  operation('getLog', {
    tag: 'logs',
    summary: 'One request as it was sent. Secrets are never in it.',
    scope: 'logs:read',
    answers: [json('The request.', ref('ModelLogDetail'))],
    errors: ['LOG_NOT_FOUND'],
    run: ({ runtime, thread, params }) => runtime.threads.log(thread.id, params.logId),
  }),
  operation('listFailures', {
    tag: 'logs',
    summary: 'What the code of tools threw, with stacks and without secrets.',
    scope: 'logs:read',
    answers: [
      json(
        'One entry per failed call, the oldest first.',
        answer({ failures: arrayOf(ref('ToolFailure')) }),
      ),
    ],
    run: async ({ runtime, thread }) => ({ failures: await runtime.threads.failures(thread.id) }),
  }),
  operation('getCost', {
    tag: 'logs',
    summary: 'Tokens and cost of a thread and its descendants.',
    scope: 'threads:read',
    answers: [json('By model and by thread.', ref('Cost'))],
    run: ({ runtime, thread }) => runtime.threads.cost(thread.id),
  }),
  operation('getAudit', {
    tag: 'logs',
    summary:
      'The audit log with a signed checkpoint. With `limit` or `cursor` a page of it; the last page has the checkpoint of the whole log and no `nextCursor`.',
    scope: 'logs:read',
    query: { limit: between(1, 5000), cursor: maxText(1000) },
    answers: [json('Lines to verify.', ref('Audit'))],
    async run({ runtime: { threads }, thread, query }) {
      const isPage = query.limit !== undefined || query.cursor !== undefined
      const first = await threads.auditPage(thread.id, query)
      if (isPage || first.nextCursor === undefined) return first
      return new Response(textStream(auditText(threads, thread.id, first)), {
        headers: { 'content-type': 'application/json; charset=utf-8' },
      })
    },
  }),
]

/** Yields a whole audit log as one JSON object. The pages after the first are read while it is sent. */
async function* auditText(
  threads: Pick<Threads, 'auditPage'>,
  threadId: string,
  first: AuditPage,
): AsyncGenerator<string, void, undefined> {
  yield `{"tree":${JSON.stringify(first.tree)},"from":0,"lines":[`
  for (let page = first; ;) {
    yield page.lines
      .map((line, index) => `${page.from + index > 0 ? ',' : ''}${JSON.stringify(line)}`)
      .join('')
    const { nextCursor: cursor, checkpoint, publicKey } = page
    if (cursor === undefined) {
      yield `],"checkpoint":${JSON.stringify(checkpoint)},"publicKey":${JSON.stringify(publicKey)}}`
      return
    }
    await nextTurn()
    page = await threads.auditPage(threadId, { cursor })
  }
}

/** Converts parts of a text to the body of a response. A part is made only when the client has read the one before. */
function textStream(parts: AsyncIterable<string>): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder()
  const reader = parts[Symbol.asyncIterator]()
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = await reader.next()
      if (done) controller.close()
      else controller.enqueue(encoder.encode(value))
    },
    async cancel() {
      await reader.return?.()
    },
  })
}
