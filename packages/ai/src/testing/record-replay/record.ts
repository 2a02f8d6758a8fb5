import type { Fetch } from '../../contract/provider.ts'
import { isSecretHeader } from '../../transport/config-secrets.ts'
import {
  type Exchange,
  hideIn,
  hideInChunks,
  type RecordedResponse,
  type Recording,
  type RecordingStore,
  recordRequest,
  REDACTED,
  toRecordedChunk,
} from './recording.ts'

/** The settings of `recordFetch`. */
export interface RecordOptions {
  /** The `fetch` that sends the requests. Default: the platform's `fetch`. */
  readonly fetch?: Fetch
  /** Further secrets to remove, in addition to those found in headers and addresses. */
  readonly secrets?: readonly string[]
}

/** A `fetch` that records its exchanges. */
export interface RecordingFetch extends Fetch {
  /** Resolves when all exchanges that were read to their end are in the store. */
  saved(): Promise<void>
}

/**
 * Makes a `fetch` that sends requests as usual and saves every exchange in the store, without keys.
 * Bodies are kept in the chunks in which they arrived, with secrets overwritten. An exchange is saved
 * when its body was read to the end, failed, or was cancelled.
 *
 *     const fetch = recordFetch(fileStore('test/hello.json'))
 *     await llm({ model, config: { fetch } }).generate('Hello')
 *     await fetch.saved()
 */
export function recordFetch(store: RecordingStore, options: RecordOptions = {}): RecordingFetch {
  const { fetch = (input, init) => globalThis.fetch(input, init), secrets: more = [] } = options
  const exchanges: (Exchange | undefined)[] = []
  let saving: Promise<void> = Promise.resolve()

  const keep = (index: number, exchange: Exchange): void => {
    exchanges[index] = exchange
    const recording: Recording = {
      version: 1,
      exchanges: exchanges.filter((one) => one !== undefined),
    }
    saving = saving.then(() => store.save(recording))
    saving.catch(() => {}) // `saved` rejects with this error
  }

  const record: Fetch = async (input, init) => {
    const index = exchanges.push(undefined) - 1
    const { recorded: request, secrets } = await recordRequest(input, init, more)
    const response = await fetch(input, init)
    const { status, headers } = response
    const result: Record<string, string> = {}
    headers.forEach((value, name) => {
      // The recorded body is already decompressed, so these two headers no longer describe it.
      if (name === 'content-encoding' || name === 'content-length') return
      result[name] = isSecretHeader(name) ? REDACTED : hideIn(value, secrets)
    })
    const finish = (chunks: readonly Uint8Array[], end?: RecordedResponse['end']): void =>
      keep(index, {
        request,
        response: {
          status,
          headers: result,
          chunks: hideInChunks(chunks, secrets).map(toRecordedChunk),
          end,
        },
      })
    if (!response.body) {
      finish([])
      return response
    }
    // An abort makes the read fail, but is recorded as `left`, because the reader stopped and not the server.
    const body = tee(response.body, (chunks, end) =>
      finish(chunks, end === 'failed' && init.signal?.aborted ? 'left' : end),
    )
    return new Response(body, { status, headers })
  }
  return Object.assign(record, { saved: () => saving })
}

/**
 * Passes a body on and records its chunks. If the reader cancels the body, its end is recorded as `left`.
 */
function tee(
  body: ReadableStream<Uint8Array>,
  finish: (chunks: readonly Uint8Array[], end: RecordedResponse['end']) => void,
): ReadableStream<Uint8Array<ArrayBuffer>> {
  const reader = body.getReader()
  const chunks: Uint8Array[] = []
  return new ReadableStream<Uint8Array<ArrayBuffer>>(
    {
      async pull(controller) {
        try {
          const { done, value } = await reader.read()
          if (done) {
            finish(chunks, undefined)
            return controller.close()
          }
          chunks.push(value.slice())
          // The cast is safe: the bytes of a body are never in shared memory.
          controller.enqueue(value as Uint8Array<ArrayBuffer>)
        } catch (error) {
          finish(chunks, 'failed')
          controller.error(error)
        }
      },
      async cancel(reason) {
        finish(chunks, 'left')
        await reader.cancel(reason)
      },
    },
    { highWaterMark: 0 },
  )
}
