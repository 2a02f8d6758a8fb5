import { type JsonValue, NdjsonDecoder, SseDecoder, type SseEvent } from '@skein/base'
import { ErrorCode, isUPPError, UPPError } from '../contract/error.ts'
import { contextOf, errorOptionsOf, type VendorAnswer, type VendorCall } from './attempt.ts'
import type { ErrorContext } from './endpoint.ts'
import { errorInBody, excerpt, isHtml } from './http-error.ts'
import type { AnswerReader } from './vendor-run.ts'

/**
 * Converts frames into events. Throws a `UPPError` for an error frame, a malformed frame or a missing
 * end.
 */
export interface FrameDecoder<T> {
  push(frame: SseEvent): readonly T[]
  end(): readonly T[]
}

interface FrameReaderOptions<T> {
  /** How the body is divided into frames: by one of two text formats, or by a decoder of the vendor's own. */
  readonly framing: 'sse' | 'ndjson' | 'binary'
  /** Makes the decoder of a binary body, which reads frames of at most `maxBytes`. */
  readonly createFrames?: ((maxBytes: number) => BodyFrames) | undefined
  readonly decoder: FrameDecoder<T>
  readonly context: ErrorContext
  /**
   * True for events without content. They are held back until an event with content arrives, so that
   * the attempt can be repeated without the caller noticing.
   */
  readonly isHeld: (event: T) => boolean
  /** True for the last event; the rest of the body is then not decoded. */
  readonly isLast: (event: T) => boolean
}

/**
 * Reads a streamed body. A batch contains the events decoded from one `read` of the body. The first batch begins with
 * the events without content (`isHeld`) that came before the first content and were held back until then.
 */
export class FrameReader<T> implements AnswerReader<readonly T[]> {
  readonly #answer: VendorAnswer
  readonly #options: FrameReaderOptions<T>
  readonly #frames: BodyFrames
  #held: T[] | undefined = []
  #count = 0
  #failure: { readonly error: unknown } | undefined
  #ended = false
  #last = false

  constructor(answer: VendorAnswer, options: FrameReaderOptions<T>) {
    this.#answer = answer
    this.#options = options
    const maxBytes = answer.limits.maxResponseBytes
    if (options.createFrames) this.#frames = options.createFrames(maxBytes)
    else if (options.framing === 'sse') {
      // `flushIncomplete` is needed because some vendors leave out the blank line after their last event.
      this.#frames = new SseDecoder({ maxEventBytes: maxBytes, flushIncomplete: true })
    } else {
      const lines = new NdjsonDecoder({ maxLineBytes: maxBytes })
      this.#frames = {
        push: (chunk) => lines.push(chunk).map(toFrame),
        end: () => lines.end().map(toFrame),
      }
    }
  }

  async next(): Promise<readonly T[] | undefined> {
    while (!this.#ended) {
      if (this.#failure) throw this.#failure.error
      if (this.#last) return this.#drain()
      const chunk = await this.#answer.read()
      const events: T[] = []
      try {
        if (chunk) this.#decode(this.#frames.push(chunk), events)
        else this.#end(events)
      } catch (error) {
        // Events decoded before the failure are still returned; the error is thrown by the next call.
        this.#failure = { error: asUPPError(error, this.#options.context) }
      }
      const batch = this.#held ? this.#release(events) : events
      if (batch.length > 0) return batch
    }
    return undefined
  }

  #decode(frames: readonly SseEvent[], events: T[]): void {
    const { decoder, isLast } = this.#options
    for (const frame of frames) {
      if (++this.#count > this.#answer.limits.maxEvents) throw this.#answer.tooLarge('maxEvents')
      if (frame.data === '') continue // an empty keep-alive frame
      const batch = decoder.push(frame)
      for (const event of batch) events.push(event)
      // Some servers send extra frames after the last event; decoders need not handle them.
      const last = batch.at(-1)
      if (last !== undefined && isLast(last)) return void (this.#last = true)
    }
  }

  #end(events: T[]): void {
    this.#ended = true
    try {
      this.#decode(this.#frames.end(), events)
      if (!this.#last) for (const event of this.#options.decoder.end()) events.push(event)
    } catch (error) {
      this.#ended = false
      throw error
    }
  }

  #release(events: readonly T[]): readonly T[] {
    const chunks = this.#held!
    for (const event of events) chunks.push(event)
    if (chunks.every(this.#options.isHeld)) return []
    this.#held = undefined
    return chunks
  }

  /**
   * Reads the rest of the body after the last event, only so that the connection can be reused. If the
   * server keeps the connection open for longer than `DRAIN_MS`, or breaks it, the answer is not
   * affected.
   */
  async #drain(): Promise<undefined> {
    this.#ended = true
    let timer: ReturnType<typeof setTimeout> | undefined
    const grace = new Promise<undefined>((resolve) => {
      timer = setTimeout(() => resolve(undefined), DRAIN_MS)
    })
    try {
      while (await Promise.race([this.#answer.read(), grace]));
    } catch {
      // An error is ignored here, because the answer is already complete.
    } finally {
      clearTimeout(timer)
    }
    return undefined
  }
}

const DRAIN_MS = 100

/** Divides the bytes of a body into frames. */
export interface BodyFrames {
  push(chunk: Uint8Array): readonly SseEvent[]
  end(): readonly SseEvent[]
}

function toFrame(data: string): SseEvent {
  return { event: '', data, id: '' }
}

/** Converts an error thrown while decoding a malformed response into a UPPError. */
export function asUPPError(error: unknown, context: ErrorContext): UPPError {
  if (isUPPError(error)) return error
  const reason = error instanceof Error ? error.message : String(error)
  return new UPPError(`The response of ${context.provider} could not be read: ${reason}`, {
    code: ErrorCode.InvalidResponse,
    ...context,
    cause: error,
  })
}

/** Reads a body that is one JSON value and decodes it into one value. */
export class JsonReader<T> implements AnswerReader<T> {
  readonly #answer: VendorAnswer
  readonly #call: VendorCall
  readonly #decode: (json: JsonValue, answer: VendorAnswer) => T
  #done = false

  constructor(
    answer: VendorAnswer,
    call: VendorCall,
    decode: (json: JsonValue, answer: VendorAnswer) => T,
  ) {
    this.#answer = answer
    this.#call = call
    this.#decode = decode
  }

  async next(): Promise<T | undefined> {
    if (this.#done) return undefined
    this.#done = true
    const context = contextOf(this.#call)
    const text = await this.#answer.text()
    let json: JsonValue
    try {
      json = JSON.parse(text) as JsonValue
    } catch (error) {
      const what = text.trim() === '' ? 'is empty' : isHtml(text) ? 'is a web page' : 'is not JSON'
      throw new UPPError(
        `The response of ${context.provider} ${what} (HTTP ${this.#answer.status}).`,
        {
          code: ErrorCode.InvalidResponse,
          ...context,
          statusCode: this.#answer.status,
          cause: error,
          body: text === '' ? undefined : excerpt(text),
          hint: 'If baseUrl is set, check that it ends in the versioned prefix, e.g. /v1.',
        },
      )
    }
    try {
      return this.#decode(json, this.#answer)
    } catch (error) {
      if (isUPPError(error) && error.code !== ErrorCode.InvalidResponse) throw error
      const vendorError = errorInBody(json, this.#answer, errorOptionsOf(this.#call))
      throw vendorError ?? asUPPError(error, context)
    }
  }
}
