import { isSecretHeader } from '../../transport/redact.ts'
import type { Fetch } from '../../contract/provider.ts'
import {
  type Exchange,
  fromRecordedChunk,
  hideIn,
  hideInChunks,
  recordRequest,
  type RecordedRequest,
  type RecordedResponse,
  type Recording,
  RecordingError,
  type RecordingStore,
  REDACTED,
  requestKey,
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
    const kept: Record<string, string> = {}
    headers.forEach((value, name) => {
      // The recorded body is already decompressed, so these two headers no longer describe it.
      if (name === 'content-encoding' || name === 'content-length') return
      kept[name] = isSecretHeader(name) ? REDACTED : hideIn(value, secrets)
    })
    const finish = (chunks: readonly Uint8Array[], end?: RecordedResponse['end']): void =>
      keep(index, {
        request,
        response: {
          status,
          headers: kept,
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

/** The settings of `replayFetch`. */
export interface ReplayOptions {
  /** The secrets that were given to `recordFetch`, so that they are removed from requests here, too. */
  readonly secrets?: readonly string[]
}

/**
 * Makes a `fetch` that answers from a recording and never uses the network. Requests are matched by
 * method, address and body; each exchange is used once, in order. Bodies arrive in the same chunks as
 * recorded. A request that was not recorded throws a `RecordingError` that names the most similar
 * recorded request.
 */
export function replayFetch(
  source: Recording | RecordingStore,
  { secrets = [] }: ReplayOptions = {},
): Fetch {
  let waiting: Promise<Exchange[]> | undefined
  return async (input, init) => {
    init.signal?.throwIfAborted()
    const exchanges = await (waiting ??= load(source))
    const { recorded } = await recordRequest(input, init, secrets)
    const key = requestKey(recorded)
    const index = exchanges.findIndex(({ request }) => requestKey(request) === key)
    if (index < 0) {
      const { method, url, body } = recorded
      const same = exchanges.find((one) => one.request.method === method && one.request.url === url)
      const hint = same
        ? `Recorded for this address, with another body: ${shown(same.request)}`
        : exchanges.length > 0
          ? `Left in the recording: ${exchanges.map((one) => `${one.request.method} ${one.request.url}`).join(', ')}`
          : 'The recording is used up.'
      const told = body ? ` with ${shown(recorded)}` : ''
      throw new RecordingError(`${method} ${url}${told} was not recorded.`, {
        code: 'NOT_RECORDED',
        hint,
      })
    }
    const [exchange] = exchanges.splice(index, 1)
    return toResponse(exchange!, init.signal ?? undefined)
  }
}

async function load(source: Recording | RecordingStore): Promise<Exchange[]> {
  const recording = 'exchanges' in source ? source : await source.load()
  if (recording?.version === 1) return [...recording.exchanges]
  throw new RecordingError(
    recording ? 'The recording is of another version.' : 'There is no recording.',
    { code: 'NO_RECORDING', hint: 'Run once with recordFetch.' },
  )
}

function shown({ body }: RecordedRequest): string {
  return (body && 'text' in body ? body.text : JSON.stringify(body ?? null)).slice(0, 400)
}

/** Status codes for which a `Response` must not have a body, not even an empty one. */
const bodiless = new Set([101, 204, 205, 304])

function toResponse({ response }: Exchange, signal: AbortSignal | undefined): Response {
  const { status, headers, chunks, end } = response
  const init = { status, headers }
  if (bodiless.has(status)) return new Response(null, init)
  let next = 0
  const body = new ReadableStream<Uint8Array<ArrayBuffer>>(
    {
      start(controller) {
        signal?.addEventListener('abort', () => controller.error(signal.reason), { once: true })
      },
      pull(controller) {
        if (signal?.aborted) return
        const chunk = chunks[next++]
        if (chunk) controller.enqueue(fromRecordedChunk(chunk) as Uint8Array<ArrayBuffer>)
        else if (end === 'failed') controller.error(new TypeError('terminated'))
        else if (!end) controller.close()
        // If the reader left while recording, the rest of the body is unknown: a reader that continues
        // here waits for ever.
      },
    },
    { highWaterMark: 0 },
  )
  return new Response(body, init)
}
