import { untilAborted, type Clock, systemClock, isPromise, type MaybePromise } from '@skein/base'
import type { ProviderConfig } from '../contract/provider.ts'
import { ErrorCode, isUPPError, type Modality, overLimit, UPPError } from '../contract/error.ts'
import { joinBytes } from '../media/bytes.ts'
import type { ErrorResponse, VendorError } from '../contract/vendor-error.ts'
import {
  type ErrorContext,
  requestHeaders,
  requestUrl,
  resolveKey,
  type VendorEndpoint,
} from './endpoint.ts'
import { httpError, type HttpErrorOptions, rateLimitOf, requestIdOf } from './http-error.ts'
import { type CallLimits, limitsOf } from './time-limits.ts'
import { type TimeoutPhase, Watchdog } from './watchdog.ts'
import { networkError } from './network-error.ts'
import { pickTransport } from './pick-transport.ts'
import { redactUPPError } from './redact.ts'
import { secretsOf } from './config-secrets.ts'
import {
  type BodyPieces,
  isInPieces,
  type ResponseHeaders,
  type TransportRequest,
  type TransportResponse,
} from './transport.ts'

/** One request to a vendor, of any modality. */
export interface VendorCall {
  readonly endpoint: VendorEndpoint
  readonly modality: Modality
  readonly config: ProviderConfig
  readonly signal: AbortSignal
  /** The path below the base URL, with its query. */
  readonly path: string
  readonly method?: 'GET' | 'POST'
  readonly headers?: Readonly<Record<string, string>>
  /** The body: JSON text, whole or in pieces, or a form. */
  readonly body?: string | FormData | BodyPieces
  readonly decodeError: (response: ErrorResponse) => VendorError
  readonly clock?: Clock
}

/** A successful response whose body is read under the attempt's limits. */
export interface VendorAnswer {
  readonly status: number
  readonly headers: ResponseHeaders
  readonly limits: CallLimits
  /** Returns the next bytes that have arrived, at least one; undefined at the end. A promise only if it has to wait. */
  read(): MaybePromise<Uint8Array | undefined>
  /** Returns what the next `read` will return, without consuming it. */
  peek(): Promise<Uint8Array | undefined>
  /** Reads the whole body. */
  bytes(): Promise<Uint8Array>
  /** Reads the whole body as text. */
  text(): Promise<string>
  /** Makes the error of a response that is over a limit. */
  tooLarge(name: 'maxResponseBytes' | 'maxEvents'): UPPError
}

/** One attempt of a call, with its own key, time limits and connection. The caller must close it. */
export class Attempt implements VendorAnswer {
  readonly #call: VendorCall
  readonly #context: ErrorContext
  readonly #controller = new AbortController()
  readonly #watchdog: Watchdog
  readonly limits: CallLimits
  readonly #onAbort = (): void => this.#controller.abort(cancelled(this.#call))
  key: string | undefined
  #headers: Readonly<Record<string, string>> | undefined
  #url = ''
  #response: TransportResponse | undefined
  #hasRead = false
  #readBytes = 0
  #peeked: Uint8Array | undefined

  constructor(call: VendorCall) {
    this.#call = call
    this.#context = contextOf(call)
    this.limits = limitsOf(call.config, this.#context)
    const { headersMs, firstByteMs, idleMs } = this.limits
    this.#watchdog = new Watchdog(Math.min(headersMs, firstByteMs, idleMs), (phase, ms) =>
      this.#controller.abort(
        new UPPError(`${this.#context.provider} ${waitedFor[phase]} within ${ms} ms.`, {
          code: ErrorCode.Timeout,
          ...this.#context,
          hint: `The limit is ${settingOf[phase]}.`,
        }),
      ),
    )
  }

  /** The texts that must not appear in an error. */
  get secrets(): readonly string[] {
    const { config, endpoint } = this.#call
    const own = secretsOf(this.key, this.#headers ?? config.headers ?? {})
    return [...own, ...(endpoint.authorizer?.secrets ?? [])]
  }

  get status(): number {
    return this.#response?.status ?? 0
  }

  get headers(): ResponseHeaders {
    return this.#response?.headers ?? new Headers()
  }

  /** Sends the request and waits for the response headers; throws unless the status is 2xx. */
  async open(): Promise<VendorAnswer> {
    const { signal } = this.#call
    if (signal.aborted) throw cancelled(this.#call)
    signal.addEventListener('abort', this.#onAbort, { once: true })
    this.#watchdog.start(this.limits.totalMs)
    const preparation = this.#prepare()
    const request = isPromise(preparation) ? await preparation : preparation
    this.#watchdog.arm('headers', this.limits.headersMs)
    const transport = pickTransport(this.#call.config)
    const { authorizer } = this.#call.endpoint
    const isOpen = this.key === undefined && !request.headers['authorization']
    const response = await (authorizer && isOpen
      ? authorizer.send(request, transport)
      : transport.send(request))
    this.#watchdog.disarm()
    this.#response = response
    if (response.status >= 200 && response.status < 300) return this
    throw await this.#failure(response)
  }

  async peek(): Promise<Uint8Array | undefined> {
    return (this.#peeked ??= await this.read())
  }

  read(): MaybePromise<Uint8Array | undefined> {
    const peeked = this.#peeked
    this.#peeked = undefined
    if (peeked) return peeked
    const chunk = this.#response!.body.read()
    if (!isPromise(chunk)) return this.#counted(chunk)
    const { firstByteMs, idleMs } = this.limits
    this.#watchdog.arm(this.#hasRead ? 'idle' : 'firstByte', this.#hasRead ? idleMs : firstByteMs)
    return chunk.then((bytes) => {
      this.#watchdog.disarm()
      return this.#counted(bytes)
    })
  }

  #counted(chunk: Uint8Array | undefined): Uint8Array | undefined {
    this.#hasRead = true
    this.#readBytes += chunk?.length ?? 0
    if (this.#readBytes > this.limits.maxResponseBytes) throw this.tooLarge('maxResponseBytes')
    return chunk
  }

  bytes(): Promise<Uint8Array> {
    return this.#readAll((bytes) => bytes)
  }

  text(): Promise<string> {
    return this.#readAll((bytes) => decoder.decode(bytes))
  }

  async #readAll<T>(convert: (bytes: Uint8Array) => T): Promise<T> {
    if (Number(this.headers.get('content-length') ?? 0) > this.limits.maxResponseBytes)
      throw this.tooLarge('maxResponseBytes')
    const chunks: Uint8Array[] = []
    for (;;) {
      const read = this.read()
      const chunk = isPromise(read) ? await read : read
      if (!chunk) return convert(joinBytes(chunks))
      chunks.push(chunk)
    }
  }

  /** Ends the attempt and closes the connection if the response is not complete. */
  close(): void {
    this.#call.signal.removeEventListener('abort', this.#onAbort)
    this.#watchdog.stop()
    if (this.#response) this.#response.body.cancel()
    else this.#controller.abort(cancelled(this.#call))
  }

  /** Converts anything thrown during the attempt into a UPPError without the given secrets. */
  errorOf(error: unknown, secrets: readonly string[]): UPPError {
    const { signal } = this.#controller
    const typed: UPPError = signal.aborted
      ? // only this class aborts this signal, always with a UPPError
        (signal.reason as UPPError)
      : isUPPError(error)
        ? error
        : networkError(error, this.#context, this.#url)
    const headers = this.#response?.headers
    const facts = headers
      ? { requestId: requestIdOf(headers), rateLimit: rateLimitOf(headers) }
      : {}
    return redactUPPError(typed, secrets, facts)
  }

  /** Makes the request; waits only for a key that is a promise. */
  #prepare(): MaybePromise<TransportRequest> {
    const { endpoint, config, path } = this.#call
    this.#url = requestUrl(config.baseUrl ?? endpoint.baseUrl, path, this.#context)
    const key = resolveKey(endpoint, config, this.#context)
    if (typeof key !== 'object') return this.#requestWith(key)
    return untilAborted(this.#controller.signal, key).then((ready) => this.#requestWith(ready))
  }

  #requestWith(key: string | undefined): TransportRequest {
    const { endpoint, config, method = 'POST', body } = this.#call
    const { signal } = this.#controller
    this.key = key
    // No content type is set for a form, because that header must contain the boundary, which the form's
    // encoder chooses.
    const type: Record<string, string> =
      typeof body === 'string' || isInPieces(body) ? { 'content-type': 'application/json' } : {}
    const headers = requestHeaders(
      { endpoint, config, key, request: { ...type, ...this.#call.headers } },
      this.#context,
    )
    this.#headers = headers
    const { connectMs } = this.limits
    return { url: this.#url, method, headers, signal, body, connectMs }
  }

  async #failure(response: TransportResponse): Promise<UPPError> {
    const chunks: Uint8Array[] = []
    let length = 0
    try {
      while (length < this.limits.maxErrorBytes) {
        const chunk = await this.read()
        if (!chunk) break
        chunks.push(chunk)
        length += chunk.length
      }
    } catch {
      // The status alone makes this an error; a broken body only loses part of the explanation.
    }
    const text = decoder.decode(joinBytes(chunks).subarray(0, this.limits.maxErrorBytes))
    this.#controller.signal.throwIfAborted()
    const { status, headers } = response
    return httpError({ status, headers, text }, errorOptionsOf(this.#call))
  }

  tooLarge(name: 'maxResponseBytes' | 'maxEvents'): UPPError {
    return overLimit('The response', name, this.limits[name], this.#context)
  }
}

/** Returns the provider and modality that errors of this call carry. */
export function contextOf({ endpoint, modality }: VendorCall): ErrorContext {
  return { provider: endpoint.name, modality }
}

/** Returns the options with which `httpError` makes errors of this call. */
export function errorOptionsOf(call: VendorCall): HttpErrorOptions {
  const { clock = systemClock, decodeError, endpoint } = call
  return {
    context: contextOf(call),
    decodeError,
    keyVariables: endpoint.keyVariables,
    now: clock.now(),
  }
}

/** Makes the error of a call whose signal was aborted. */
export function cancelled(call: VendorCall): UPPError {
  const { reason } = call.signal as { reason: unknown }
  return new UPPError(`The call to ${call.endpoint.name} was cancelled.`, {
    code: ErrorCode.Cancelled,
    ...contextOf(call),
    cause: reason,
  })
}

const waitedFor: Readonly<Record<TimeoutPhase, string>> = {
  total: 'did not finish',
  headers: 'sent no response headers',
  firstByte: 'sent no first byte of the body',
  idle: 'sent nothing more',
}
const settingOf: Readonly<Record<TimeoutPhase, string>> = {
  total: 'config.timeout',
  headers: 'config.timeouts.headersMs',
  firstByte: 'config.timeouts.firstByteMs',
  idle: 'config.timeouts.idleMs',
}

const decoder = new TextDecoder()
