import { type AuditPage, nextTurn } from '@skein/runtime/serving'
import type { Threads, FileStat } from '@skein/runtime'
import { HttpError } from './http-error.ts'
import { done, json, jsonResponse, operation, raw, type OperationRoute } from './operation.ts'
import { actorOf } from './principal.ts'
import { ref } from './schemas.ts'
import { answer, arrayOf, maxText, between, choice } from '@skein/base/shape'
import { viewHtml, threadView, publicEvent, withoutLongResults } from '@skein/runtime/view'

/**
 * The operations on the files of a thread. Paths begin with a slash; the runtime refuses paths that leave the
 * thread.
 */
export const fileOperations: readonly OperationRoute[] = [
  operation('listFiles', {
    tag: 'files',
    summary: 'The files of the thread.',
    scope: 'threads:read',
    query: { prefix: maxText(1024) },
    answers: [json('The files.', answer({ files: arrayOf(ref('File')) }))],
    run: async ({ runtime, thread, query }) => ({
      files: await runtime.threads.files.list(thread.id, query.prefix),
    }),
  }),
  operation('readFile', {
    tag: 'files',
    summary: 'The bytes of a file; `etag` is the hash of its content.',
    scope: 'threads:read',
    answers: [
      raw('The bytes.', '*/*', { type: 'string', format: 'binary' }),
      done('You have this content already.', 304),
    ],
    errors: ['FILE_NOT_FOUND', 'FILE_PATH_INVALID'],
    async run({ runtime: { threads }, thread, params, request }) {
      const stat = await threads.files.stat(thread.id, `/${params.path}`)
      if (!stat) throw fileNotFound()
      const headers = fileHeaders(stat)
      const { etag } = headers
      const known = request.headers.get('if-none-match')?.split(',') ?? []
      if (known.some((tag) => ['*', etag].includes(tag.trim().replace(/^W\//, ''))))
        return new Response(null, { status: 304, headers: { etag } })
      const { bytes } = await threads.files.read(thread.id, stat.path)
      return new Response(new Uint8Array(bytes), { headers })
    },
  }),
  operation('writeFile', {
    tag: 'files',
    summary: 'Writes a file; `content-type` is its media type.',
    scope: 'threads:write',
    body: { bytes: 'file' },
    answers: [json('The file.', ref('File'))],
    errors: ['FILE_PATH_INVALID', 'FILE_TOO_LARGE', 'THREAD_TERMINATED'],
    async run({ runtime, thread, params, bytes, request, principal }) {
      const mediaType = request.headers.get('content-type')?.slice(0, 200)
      const options = { mediaType, by: actorOf(principal) }
      const stat = await runtime.threads.files.write(thread.id, `/${params.path}`, bytes, options)
      return jsonResponse(stat, { headers: { etag: `"${stat.hash}"` } })
    },
  }),
  operation('deleteFile', {
    tag: 'files',
    summary: 'Removes a file.',
    scope: 'threads:write',
    answers: [done('The file is removed.')],
    errors: ['FILE_NOT_FOUND', 'FILE_PATH_INVALID', 'THREAD_TERMINATED'],
    async run({ runtime, thread, params }) {
      if (await runtime.threads.files.remove(thread.id, `/${params.path}`)) return
      throw fileNotFound()
    },
  }),
]

function fileNotFound(): HttpError {
  return new HttpError('There is no such file in this thread.', { code: 'FILE_NOT_FOUND' })
}

/** Media types that a browser displays without executing anything in them. */
const SAFE_TYPES: ReadonlySet<string> = new Set([
  'text/plain',
  'text/markdown',
  'text/csv',
  'application/json',
  'application/pdf',
  'image/png',
  'image/jpeg',
  'image/gif',
  'image/webp',
  'image/avif',
  'audio/mpeg',
  'audio/wav',
  'audio/ogg',
  'video/mp4',
  'video/webm',
])

/**
 * Creates the headers for a stored file. The writer of the file, possibly a model, chose its name and type,
 * so neither may inject a header, and files of a type that a browser could execute are sent as downloads.
 */
export function fileHeaders({ path, mediaType, hash, sizeBytes }: FileStat): {
  readonly [name: string]: string
  readonly etag: string
} {
  const isPlain = /^[\w.+-]+\/[\w.+-]+(; ?[\w-]+=[\w.-]+)*$/.test(mediaType)
  const isUsable = isPlain && mediaType.length <= 200
  const type = isUsable ? mediaType.toLowerCase() : 'application/octet-stream'
  const isSafe = SAFE_TYPES.has(type.split(';')[0]!.trim())
  const name = path.split('/').at(-1) ?? 'file'
  const disposition = isSafe ? 'inline' : 'attachment'
  return {
    'content-type': type,
    'content-length': String(sizeBytes),
    'content-disposition': `${disposition}; filename="${name.replace(/[^\w.-]/g, '_')}"; filename*=UTF-8''${encodeName(name)}`,
    'content-security-policy': "sandbox; default-src 'none'",
    etag: `"${hash}"`,
    'cache-control': 'private, no-cache',
  }
}

function encodeName(name: string): string {
  // A name may contain unpaired surrogates, which cannot be encoded.
  const wellFormed = name.replace(/[\ud800-\udfff]/gu, '_')
  return encodeURIComponent(wellFormed).replace(
    /['()*]/g,
    (mark) => `%${mark.charCodeAt(0).toString(16)}`,
  )
}

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
          const cut = maxResultChars && withoutLongResults(event, maxResultChars)
          return cut
            ? { seq, event: publicEvent(cut), isCut: true }
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
