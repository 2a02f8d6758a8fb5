import type { FileStat } from '@skein/runtime'
import { HttpError } from './http-error.ts'
import { done, json, jsonResponse, operation, raw, type OperationRoute } from './operation.ts'
import { actorOf } from './principal.ts'
import { ref } from './schemas.ts'
import { answer, arrayOf, maxText } from '@skein/base/shape'

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
      const tags = request.headers.get('if-none-match')?.split(',') ?? []
      if (tags.some((tag) => ['*', etag].includes(tag.trim().replace(/^W\//, ''))))
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
