import type { FileStat } from '../thread-state.ts'

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
