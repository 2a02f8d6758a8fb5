import { isPlainObject, type JsonValue } from '@skein/base'
import { HttpError } from './http-error.ts'
import type { TimerHandle, Timers } from '../dispatch/dispatcher.ts'

export interface BodyLimits {
  readonly maxBytes: number
  /** For the whole body. */
  readonly timeoutMs: number
  readonly timers: Timers
}

/** The body of a request, read no further than the limit and no longer than the time. */
export async function readBytes(request: Request, limits: BodyLimits): Promise<Uint8Array> {
  const { maxBytes, timeoutMs, timers } = limits
  const declared = Number(request.headers.get('content-length') ?? 0)
  if (!(declared <= maxBytes)) throw tooLarge(maxBytes)
  if (!request.body) return new Uint8Array()
  const reader = request.body.getReader()
  let timer: TimerHandle
  const isLate = new Promise<'late'>((resolve) => {
    timer = timers.set(timeoutMs, () => resolve('late'))
  })
  const chunks: Uint8Array[] = []
  let length = 0
  try {
    for (;;) {
      const step = await Promise.race([reader.read(), isLate])
      if (step === 'late') throw tooSlow()
      if (step.done) return joined(chunks, length)
      length += step.value.length
      if (length > maxBytes) throw tooLarge(maxBytes)
      chunks.push(step.value)
    }
  } catch (error) {
    reader.cancel().catch(() => undefined) // the rest is of no interest, nor is why it did not come
    throw error instanceof HttpError ? error : brokenOff(error)
  } finally {
    timers.clear(timer)
  }
}

/** JSON from bytes, no deeper than the limit. */
export function parseJson(bytes: Uint8Array, maxDepth: number): JsonValue {
  let value: JsonValue
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
    value = JSON.parse(text) as JsonValue // JSON.parse gives JSON
  } catch (cause) {
    throw new HttpError('The body is not JSON in UTF-8.', { code: 'BODY_INVALID', cause })
  }
  if (isDeeperThan(value, maxDepth))
    throw new HttpError(`The body is nested deeper than ${maxDepth} levels.`, {
      code: 'BODY_INVALID',
    })
  return value
}

/** Level by level: what is too deep to walk is refused before anybody walks it. */
function isDeeperThan(value: JsonValue, maxDepth: number): boolean {
  let level: unknown[] = [value]
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > maxDepth) return true
    const next: unknown[] = []
    for (const item of level) {
      if (Array.isArray(item)) for (const child of item) addContainer(next, child)
      else if (isPlainObject(item)) for (const key in item) addContainer(next, item[key])
    }
    level = next
  }
  return false
}

function addContainer(list: unknown[], value: unknown): void {
  if (typeof value === 'object' && value !== null) list.push(value)
}

function joined(chunks: readonly Uint8Array[], length: number): Uint8Array {
  if (chunks.length === 1) return chunks[0]!
  const bytes = new Uint8Array(length)
  let at = 0
  for (const chunk of chunks) {
    bytes.set(chunk, at)
    at += chunk.length
  }
  return bytes
}

const closing = { connection: 'close' }

function tooLarge(maxBytes: number): HttpError {
  const message = `The body is larger than ${maxBytes} bytes.`
  return new HttpError(message, { code: 'BODY_TOO_LARGE', headers: closing })
}

function tooSlow(): HttpError {
  const message = 'The body did not arrive in time.'
  return new HttpError(message, { code: 'BODY_TIMEOUT', headers: closing })
}

function brokenOff(cause: unknown): HttpError {
  return new HttpError('The body broke off.', { code: 'BODY_INVALID', cause, headers: closing })
}
