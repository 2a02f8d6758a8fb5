import type { Fetch } from '../../contract/provider.ts'
import { fromRecordedChunk } from './recorded-bytes.ts'
import { readRequest, requestKey } from './recorded-request.ts'
import {
  RecordingError,
  type Exchange,
  type RecordedRequest,
  type Recording,
  type RecordingStore,
} from './recording.ts'

export interface ReplayOptions {
  /** As given to `recordFetch`: texts that were taken out of the requests. */
  readonly secrets?: readonly string[]
}

/**
 * A `fetch` that answers from a recording and never touches the network. Requests are matched by
 * method, address and body, each exchange is used once, in order; bodies come in the reads in which
 * they were recorded. A request that was not recorded is a `RecordingError` that tells the nearest.
 */
export function replayFetch(
  source: Recording | RecordingStore,
  { secrets = [] }: ReplayOptions = {},
): Fetch {
  let waiting: Promise<Exchange[]> | undefined
  return async (input, init) => {
    init.signal?.throwIfAborted()
    const exchanges = await (waiting ??= load(source))
    const { recorded } = await readRequest(input, init, secrets)
    const key = requestKey(recorded)
    const index = exchanges.findIndex(({ request }) => requestKey(request) === key)
    if (index < 0) throw notRecorded(recorded, exchanges)
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

function notRecorded(request: RecordedRequest, left: readonly Exchange[]): RecordingError {
  const { method, url, body } = request
  const same = left.find((one) => one.request.method === method && one.request.url === url)
  const hint = same
    ? `Recorded for this address, with another body: ${shown(same.request)}`
    : left.length > 0
      ? `Left in the recording: ${left.map((one) => `${one.request.method} ${one.request.url}`).join(', ')}`
      : 'The recording is used up.'
  const told = body ? ` with ${shown(request)}` : ''
  return new RecordingError(`${method} ${url}${told} was not recorded.`, {
    code: 'NOT_RECORDED',
    hint,
  })
}

function shown({ body }: RecordedRequest): string {
  return (body && 'text' in body ? body.text : JSON.stringify(body ?? null)).slice(0, 400)
}

/** A `Response` of these may not be given a body, not even an empty one. */
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
        // A body that was left has no end here either: whoever reads on waits, as then.
      },
    },
    { highWaterMark: 0 },
  )
  return new Response(body, init)
}
