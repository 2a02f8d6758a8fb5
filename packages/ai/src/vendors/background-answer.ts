import type { JsonValue } from '@skein/base'
import { ErrorCode, UPPError } from '../contract/error.ts'
import type { StreamEvent } from '../contract/event.ts'
import type { EndpointRequest, LLMRequest, Params } from '../contract/provider.ts'
import { limitsOf, sleep } from '../transport/time-limits.ts'

type Batch = readonly StreamEvent[]

/** How a vendor makes answers in the background, which outlive the connection of their request. */
export interface BackgroundAnswers {
  /** True if the caller asks for such an answer. */
  isRequested(params: Params): boolean
  /** Waits for an answer that may not be over; see `awaitAnswer`. */
  await(first: Batch, call: BackgroundCall & { decode(body: JsonValue): Batch }): Promise<Batch>
  /** Ends an answer whose stream the caller leaves; see `stoppedOnLeave`. */
  stopOnLeave(
    run: AsyncIterableIterator<Batch, undefined>,
    call: BackgroundCall,
  ): AsyncIterableIterator<Batch, undefined>
}

/** Answers in the background that can be asked for below a path: queued first, then asked for unless they are streamed. */
function answersAt(path: string): BackgroundAnswers {
  return {
    isRequested: (params) => params['background'] === true,
    await: (first, call) => awaitAnswer(first, call, path),
    stopOnLeave: (run, call) => stoppedOnLeave(run, call, path),
  }
}

/** Answers in the background of OpenAI's Responses. */
export const openaiBackground: BackgroundAnswers = answersAt('/responses')
/** Answers in the background of Google's Interactions. */
export const googleBackground: BackgroundAnswers = answersAt('/interactions')

/** The request of an answer, and the model that is asked for it. */
export interface BackgroundCall {
  readonly request: LLMRequest
  readonly provider: string
  send(asked: EndpointRequest): Promise<JsonValue>
}

/** How long to wait before an answer is asked for, the first time and at most. */
const FIRST_POLL_MS = 200
const MAX_POLL_MS = 5000
/** How long the vendor may take to confirm that it has stopped. */
const CANCEL_MS = 10_000

/**
 * Asks for an answer until it is over, at most for `config.timeout`. If the caller no longer waits for it, the vendor
 * gets a request to stop: ending a connection does not end what it makes in the background, and it charges for that.
 */
async function awaitAnswer(
  first: Batch,
  call: BackgroundCall & { decode(body: JsonValue): Batch },
  list: string,
): Promise<Batch> {
  const { request, provider, send, decode } = call
  const { config, signal, clock } = request
  const path = pathOf(first, list)
  if (path === undefined || !isPending(first)) return first
  const { totalMs = Infinity } = limitsOf(config, { provider, modality: 'llm' })
  const deadline = performance.now() + totalMs
  try {
    for (let delay = FIRST_POLL_MS; ; delay = Math.min(delay * 1.5, MAX_POLL_MS)) {
      const msLeft = deadline - performance.now()
      if (msLeft <= 0) throw notFinished(provider, totalMs)
      await sleep(Math.min(delay, msLeft), signal)
      const events = decode(await send({ config, signal, clock, path, method: 'GET' }))
      if (!isPending(events)) return events
    }
  } catch (error) {
    if (signal.aborted || performance.now() >= deadline) stop(call, path)
    throw error
  }
}

/** Returns the stream of an answer in the background. The vendor gets a request to stop when the caller leaves the stream. */
function stoppedOnLeave(
  run: AsyncIterableIterator<Batch, undefined>,
  call: BackgroundCall,
  list: string,
): AsyncIterableIterator<Batch, undefined> {
  let path: string | undefined
  const stopOnce = (): void => {
    if (path !== undefined) stop(call, path)
    path = undefined
  }
  return {
    [Symbol.asyncIterator]() {
      return this
    },
    async next() {
      try {
        const step = await run.next()
        path ??= pathOf(step.value ?? [], list)
        // There is nothing to stop after the end.
        if (step.done || step.value.some(({ type }) => type === 'message_stop')) path = undefined
        return step
      } catch (error) {
        // After a failure of the network the answer can still be asked for by its id.
        if (call.request.signal.aborted) stopOnce()
        throw error
      }
    },
    async return() {
      stopOnce()
      return (await run.return?.()) ?? { done: true, value: undefined }
    },
  }
}

function stop({ send, request: { config, clock } }: BackgroundCall, path: string): void {
  const signal = AbortSignal.timeout(CANCEL_MS)
  // The call has ended for its caller; whether the vendor received the request changes nothing about that.
  send({ config, signal, clock, path: `${path}/cancel`, method: 'POST' }).catch(() => {})
}

function notFinished(provider: string, ms: number): UPPError {
  return new UPPError(`${provider} did not finish its answer in the background within ${ms} ms.`, {
    code: ErrorCode.Timeout,
    provider,
    modality: 'llm',
    hint: 'The limit is config.timeout.',
  })
}

/** Returns the path at which an answer can be asked for; a POST to `cancel` below it ends the answer. */
function pathOf(events: Batch, list: string): string | undefined {
  const start = events.find(({ type }) => type === 'message_start')
  const id = start?.type === 'message_start' ? start.delta.id : undefined
  return id === undefined ? undefined : `${list}/${encodeURIComponent(id)}`
}

function isPending(events: Batch): boolean {
  return events.some(
    ({ type, delta }) =>
      type === 'message_stop' && /^(queued|in_progress)$/.test(delta.rawStopReason ?? ''),
  )
}
