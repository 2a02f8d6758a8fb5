import type { JsonObject } from '@skein/base'
import type { ErrorCode } from '../../contract/error.ts'

/** What goes wrong with one request. Faults take no step of the script, unless the model answers first. */
export type Fault =
  /** An HTTP error in the vendor's words, e.g. 429 with `retry-after`, 529, 500. */
  | {
      readonly kind: 'error'
      readonly code: ErrorCode
      readonly status?: number
      readonly message?: string
      readonly headers?: Readonly<Record<string, string>>
      /** A body of your own instead. */
      readonly body?: JsonObject | string
    }
  /** A page of some proxy between the client and the vendor. */
  | { readonly kind: 'html'; readonly status?: number }
  /** Nothing comes before the headers, or after so many bytes of the body, until the client leaves. */
  | { readonly kind: 'stall'; readonly afterBytes?: number }
  /** The connection breaks before the headers, or after so many bytes of the body. */
  | { readonly kind: 'cut'; readonly afterBytes?: number }
  /** JSON that is none, after so many events of a stream. */
  | { readonly kind: 'malformed'; readonly afterEvents?: number }
  /** A stream with status 200 that tells an error after so many events. */
  | {
      readonly kind: 'error_event'
      readonly code: ErrorCode
      readonly status?: number
      readonly message?: string
      readonly afterEvents?: number
    }

/** Thrown where the connection breaks. */
export class ConnectionCut extends Error {}

/** Applies the faults that concern the bytes of a body. */
export async function* withByteFault(
  chunks: AsyncIterable<Uint8Array>,
  fault: Fault | undefined,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array, void> {
  const isByteFault = fault?.kind === 'stall' || fault?.kind === 'cut'
  if (!isByteFault || fault.afterBytes === undefined) return yield* chunks
  let left = fault.afterBytes
  for await (const chunk of chunks) {
    if (chunk.length < left) {
      left -= chunk.length
      yield chunk
      continue
    }
    if (left > 0) yield chunk.subarray(0, left)
    if (fault.kind === 'cut') throw new ConnectionCut('The connection was cut.')
    await untilAborted(signal)
  }
}

/** Never resolves; rejects when the client leaves. */
export function untilAborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const fail = (): void => reject(signal.reason)
    if (signal.aborted) fail()
    signal.addEventListener('abort', fail, { once: true })
  })
}
