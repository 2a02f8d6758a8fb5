import type { Fetch } from '../../contract/provider.ts'
import {
  type Exchange,
  fromRecordedChunk,
  type RecordedRequest,
  type Recording,
  RecordingError,
  type RecordingStore,
  recordRequest,
  requestKey,
} from './recording.ts'

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
      const bodyText = body ? ` with ${shown(recorded)}` : ''
      throw new RecordingError(`${method} ${url}${bodyText} was not recorded.`, {
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
