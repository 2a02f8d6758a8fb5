import type { Fetch } from '../../contract/provider.ts'
import { hideIn, hideInChunks, isSecretHeader, REDACTED } from './hide-secrets.ts'
import { readRequest } from './recorded-request.ts'
import { toRecordedChunk } from './recorded-bytes.ts'
import type { Exchange, RecordedResponse, Recording, RecordingStore } from './recording.ts'

export interface RecordOptions {
  /** What really sends. Default: the platform's `fetch`. */
  readonly fetch?: Fetch
  /** Further texts that must not be in the recording, beside what headers and addresses tell. */
  readonly secrets?: readonly string[]
}

/** A `fetch` that remembers. */
export interface RecordingFetch extends Fetch {
  /** Resolves when all exchanges that were read to their end are in the store. */
  saved(): Promise<void>
}

/**
 * A `fetch` that sends as usual and keeps every exchange in the store: bodies byte for byte and
 * read for read, without keys. An exchange is kept when its body was read to the end, failed, or
 * was left.
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
    saving.catch(() => {}) // `saved` tells
  }

  const record: Fetch = async (input, init) => {
    const index = exchanges.push(undefined) - 1
    const { recorded: request, secrets } = await readRequest(input, init, more)
    const response = await fetch(input, init)
    const { status, headers } = response
    const finish = (chunks: readonly Uint8Array[], end?: RecordedResponse['end']): void =>
      keep(index, {
        request,
        response: {
          status,
          headers: toHeaders(headers, secrets),
          chunks: hideInChunks(chunks, secrets).map(toRecordedChunk),
          ...(end && { end }),
        },
      })
    if (!response.body) {
      finish([])
      return response
    }
    // An abort shows as a failed read; to the recording it is a reader who left.
    const body = tee(response.body, (chunks, end) =>
      finish(chunks, end === 'failed' && init.signal?.aborted ? 'left' : end),
    )
    return new Response(body, { status, headers })
  }
  return Object.assign(record, { saved: () => saving })
}

function toHeaders(headers: Headers, secrets: readonly string[]): Record<string, string> {
  const kept: Record<string, string> = {}
  headers.forEach((value, name) => {
    // The body is kept as it is after decoding.
    if (name === 'content-encoding' || name === 'content-length') return
    kept[name] = isSecretHeader(name) ? REDACTED : hideIn(value, secrets)
  })
  return kept
}

/** Passes a body on and remembers each read. A reader who leaves without a signal has left, too. */
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
          controller.enqueue(value as Uint8Array<ArrayBuffer>) // a body is never shared memory
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
