import { decodeBase64Url, encodeBase64Url } from '@skein/base'

/**
 * The kinds of ids that are sent to clients. An id contains the thread id and the part of the thread that it
 * names, so the server need not store it.
 */
export type ThreadPartIdKind = 'resp' | 'conv' | 'call' | 'task' | 'ask' | 'mcp' | 'event'

const encoder = new TextEncoder()

const decoder = new TextDecoder('utf-8', { fatal: true })

/** Encodes an id without its prefix, for encoders that add a prefix themselves. */
export function threadPartToken(threadId: string, part = ''): string {
  return encodeBase64Url(encoder.encode(JSON.stringify([threadId, part])))
}

/** Encodes the id of a response, conversation or call. */
export function threadPartId(kind: ThreadPartIdKind, threadId: string, part = ''): string {
  return `${kind}_${threadPartToken(threadId, part)}`
}

/** Decodes an id; returns undefined when this server did not create it. */
export function parseThreadPartId(
  kind: ThreadPartIdKind,
  id: string,
): { readonly threadId: string; readonly part: string } | undefined {
  if (!id.startsWith(`${kind}_`)) return undefined
  try {
    const value: unknown = JSON.parse(decoder.decode(decodeBase64Url(id.slice(kind.length + 1))))
    if (!Array.isArray(value)) return undefined
    const [threadId, part] = value as unknown[]
    return typeof threadId === 'string' && typeof part === 'string' ? { threadId, part } : undefined
  } catch {
    return undefined // this server did not create the id
  }
}
