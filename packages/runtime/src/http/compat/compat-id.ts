import { decodeBase64Url, encodeBase64Url } from '@skein/base'

/** Ids that clients get. They contain the thread and the part of it that is meant, so the server stores nothing. */
export type CompatIdKind = 'resp' | 'conv' | 'call'

const encoder = new TextEncoder()
const decoder = new TextDecoder('utf-8', { fatal: true })

/** An id without its prefix, for encoders that add one. */
export function compatToken(threadId: string, part = ''): string {
  return encodeBase64Url(encoder.encode(JSON.stringify([threadId, part])))
}

/** The id of a response, conversation or call. */
export function compatId(kind: CompatIdKind, threadId: string, part = ''): string {
  return `${kind}_${compatToken(threadId, part)}`
}

/** Undefined when it is not one of ours. */
export function parseCompatId(
  kind: CompatIdKind,
  id: string,
): { readonly threadId: string; readonly part: string } | undefined {
  if (!id.startsWith(`${kind}_`)) return undefined
  try {
    const value: unknown = JSON.parse(decoder.decode(decodeBase64Url(id.slice(kind.length + 1))))
    if (!Array.isArray(value)) return undefined
    const [threadId, part] = value as unknown[]
    return typeof threadId === 'string' && typeof part === 'string' ? { threadId, part } : undefined
  } catch {
    return undefined // an id from elsewhere
  }
}
