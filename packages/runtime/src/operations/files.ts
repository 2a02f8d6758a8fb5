import { HttpError } from './http-error.ts'
import { jsonResponse, noContent, type Route, type ThreadCall } from './operation.ts'
import { actorOf } from './principal.ts'
import { answer, listOf, ref, text } from './schemas.ts'
import type { FileStat } from '../thread-state.ts'

const path = '/threads/{threadId}/files/{path*}'

export const fileRoutes: readonly Route[] = [
  {
    id: 'listFiles',
    method: 'GET',
    path: '/threads/{threadId}/files',
    tag: 'files',
    summary: 'Files of the thread.',
    scope: 'threads:read',
    addresses: 'thread',
    probe: {},
    query: { prefix: text(1024) },
    answers: [
      { status: 200, description: 'The files.', schema: answer({ files: listOf(ref('File')) }) },
    ],
    async handle({ runtime, thread, query }) {
      const { prefix } = query as { prefix?: string } // checked by the schema
      return jsonResponse({ files: await runtime.threads.files.list(thread.id, prefix) })
    },
  },
  {
    id: 'readFile',
    method: 'GET',
    path,
    tag: 'files',
    summary: 'The bytes of a file; `etag` is the hash of its content.',
    scope: 'threads:read',
    addresses: 'thread',
    probe: {},
    answers: [
      {
        status: 200,
        description: 'The bytes.',
        mediaType: '*/*',
        schema: { type: 'string', format: 'binary' },
      },
      { status: 304, description: 'You have it already.' },
    ],
    errors: ['FILE_NOT_FOUND', 'FILE_PATH_INVALID'],
    handle: readFile,
  },
  {
    id: 'writeFile',
    method: 'PUT',
    path,
    tag: 'files',
    summary: 'Writes a file; `content-type` is its media type.',
    scope: 'threads:write',
    addresses: 'thread',
    probe: {},
    body: { bytes: 'file' },
    answers: [{ status: 200, description: 'The file.', schema: ref('File') }],
    errors: ['FILE_PATH_INVALID', 'FILE_TOO_LARGE', 'THREAD_TERMINATED'],
    async handle(call) {
      const { runtime, thread, bytes, request, principal } = call
      const mediaType = request.headers.get('content-type')
      const stat = await runtime.threads.files.write(thread.id, filePath(call), bytes, {
        ...(mediaType !== null && { mediaType: mediaType.slice(0, 200) }),
        by: actorOf(principal),
      })
      return jsonResponse(stat, { headers: { etag: `"${stat.hash}"` } })
    },
  },
  {
    id: 'deleteFile',
    method: 'DELETE',
    path,
    tag: 'files',
    summary: 'Removes a file.',
    scope: 'threads:write',
    addresses: 'thread',
    probe: {},
    answers: [{ status: 204, description: 'It is gone.' }],
    errors: ['FILE_NOT_FOUND', 'FILE_PATH_INVALID', 'THREAD_TERMINATED'],
    async handle(call) {
      const { runtime, thread } = call
      if (await runtime.threads.files.remove(thread.id, filePath(call))) return noContent()
      throw fileNotFound()
    },
  },
]

async function readFile(call: ThreadCall): Promise<Response> {
  const { runtime, thread, request } = call
  const name = filePath(call)
  const stat = await runtime.threads.files.stat(thread.id, name)
  if (!stat) throw fileNotFound()
  const headers = fileHeaders(stat)
  const known = request.headers.get('if-none-match')?.split(',') ?? []
  if (known.some((tag) => ['*', headers['etag']].includes(tag.trim().replace(/^W\//, ''))))
    return new Response(null, { status: 304, headers: { etag: headers['etag']! } })
  const { bytes } = await runtime.threads.files.read(thread.id, name)
  return new Response(new Uint8Array(bytes), { headers })
}

/** Paths begin with a slash within the thread; the runtime refuses those that could mean another place. */
function filePath({ params }: ThreadCall): string {
  return `/${params['path']!}`
}

function fileNotFound(): HttpError {
  return new HttpError('There is no such file in this thread.', { code: 'FILE_NOT_FOUND' })
}

/** Media types that a browser shows without running anything in them. */
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
 * Headers for the bytes of a stored file. Name and type were chosen by whoever wrote it, a model
 * perhaps: neither may add a header, and what could run as a page is only offered for download.
 */
export function fileHeaders({
  path,
  mediaType,
  hash,
  sizeBytes,
}: FileStat): Record<string, string> {
  const type = cleanType(mediaType)
  const isSafe = SAFE_TYPES.has(type.split(';')[0]!.trim())
  const name = path.split('/').at(-1) ?? 'file'
  const disposition = isSafe ? 'inline' : 'attachment'
  return {
    'content-type': type,
    'content-length': String(sizeBytes),
    'content-disposition': `${disposition}; filename="${asciiName(name)}"; filename*=UTF-8''${encodeName(name)}`,
    'content-security-policy': "sandbox; default-src 'none'",
    etag: `"${hash}"`,
    'cache-control': 'private, no-cache',
  }
}

function cleanType(mediaType: string): string {
  const isPlain = /^[\w.+-]+\/[\w.+-]+(; ?[\w-]+=[\w.-]+)*$/.test(mediaType)
  return isPlain && mediaType.length <= 200 ? mediaType.toLowerCase() : 'application/octet-stream'
}

function asciiName(name: string): string {
  return name.replace(/[^\w.-]/g, '_')
}

function encodeName(name: string): string {
  // Half a character, which a name may hold, cannot be encoded.
  const wellFormed = name.replace(/\p{Surrogate}/gu, '_')
  return encodeURIComponent(wellFormed).replace(
    /['()*]/g,
    (mark) => `%${mark.charCodeAt(0).toString(16)}`,
  )
}
