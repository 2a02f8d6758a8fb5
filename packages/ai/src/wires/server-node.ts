import type { EncodedRequest } from './wire.ts'

/**
 * Optimisations for servers, which handle many calls at the same time. Browsers and workers load `server-none.ts`
 * instead, because there the size of a program matters more.
 */
export { RepeatedFrame } from './repeated-frame.ts'

const encoder = new TextEncoder()
const decoder = new TextDecoder('utf-8', { ignoreBOM: true })

/** Appends text to a list and returns the list as bytes; reuses the buffer of the list if it has room. */
export function extended(
  list: string | Uint8Array<ArrayBuffer>,
  text: string,
): string | Uint8Array<ArrayBuffer> {
  if (typeof list === 'string') return extended(new Uint8Array(), list + text)
  const start = list.length
  // UTF-8 takes at most three bytes per character of a string.
  const most = start + text.length * 3
  let whole = new Uint8Array(list.buffer)
  if (whole.length < most) {
    whole = new Uint8Array(most * 2)
    whole.set(list)
  }
  const { written } = encoder.encodeInto(text, whole.subarray(start))
  return whole.subarray(0, start + written)
}

/**
 * Returns a request with the history in place of the NUL character of the body. A body without NUL stays as it is.
 */
export function inPieces(
  body: string,
  history: Uint8Array,
  rest: Omit<EncodedRequest, 'body' | 'pieces'>,
): EncodedRequest {
  const [before = '', after] = body.split('\0')
  if (after === undefined) return { body, ...rest } // the caller's parameters override the list
  return {
    ...rest,
    pieces: [before, history, after],
    get body() {
      return before + decoder.decode(history) + after
    },
  }
}
