import { untilAborted } from '@skein/base'
import type { ProviderConfig } from '../contract/provider.ts'
import { ErrorCode, UPPError } from '../contract/error.ts'
import type { ErrorContext } from './endpoint.ts'

/** The limits of one attempt, in milliseconds and bytes; undefined: none. */
export interface CallLimits {
  readonly totalMs: number | undefined
  readonly headersMs: number
  readonly firstByteMs: number
  readonly idleMs: number
  readonly maxResponseBytes: number
}

/** Long enough for slow reasoning without streaming; short enough that nothing hangs for ever. */
const DEFAULT_HEADERS_MS = 600_000
const DEFAULT_IDLE_MS = 300_000
const DEFAULT_MAX_BYTES = 64 * 1024 * 1024

/** Longer timers fire at once (a 32-bit limit of every platform). */
const MAX_TIMER_MS = 2 ** 31 - 1

/** Checks and completes the limits of a configuration. */
export function limitsOf(config: ProviderConfig, context: ErrorContext): CallLimits {
  const { timeout, timeouts, maxResponseBytes } = config
  const ms = (name: string, value: unknown): number | undefined =>
    value === undefined ? undefined : Math.min(positive(name, value, context), MAX_TIMER_MS)
  const idleMs = ms('timeouts.idleMs', timeouts?.idleMs) ?? DEFAULT_IDLE_MS
  return {
    totalMs: ms('timeout', timeout) ?? ms('timeouts.totalMs', timeouts?.totalMs),
    headersMs: ms('timeouts.headersMs', timeouts?.headersMs) ?? DEFAULT_HEADERS_MS,
    firstByteMs: ms('timeouts.firstByteMs', timeouts?.firstByteMs) ?? idleMs,
    idleMs,
    maxResponseBytes:
      maxResponseBytes === undefined
        ? DEFAULT_MAX_BYTES
        : positive('maxResponseBytes', maxResponseBytes, context),
  }
}

function positive(name: string, value: unknown, context: ErrorContext): number {
  if (typeof value === 'number' && value > 0) return value
  const shown = typeof value === 'string' ? JSON.stringify(value) : String(value)
  throw new UPPError(`config.${name} is ${shown} (${typeof value}).`, {
    code: ErrorCode.InvalidRequest,
    ...context,
    hint: 'Expected a number above 0.',
  })
}

/** Which limit was hit. */
export type TimeoutPhase = 'total' | 'headers' | 'firstByte' | 'idle'

/**
 * The time limits of one attempt. A wait is armed and disarmed many times a second in a stream, so
 * it does not touch a timer: the one that runs looks, when it fires, whether there is still time.
 */
export class Watchdog {
  readonly #onTimeout: (phase: TimeoutPhase, ms: number) => void
  #total: ReturnType<typeof setTimeout> | undefined
  #timer: ReturnType<typeof setTimeout> | undefined
  #phase: TimeoutPhase = 'headers'
  #limit = 0
  /** Infinity while nothing is waited for. */
  #deadline = Infinity

  constructor(onTimeout: (phase: TimeoutPhase, ms: number) => void) {
    this.#onTimeout = onTimeout
  }

  start(totalMs: number | undefined): void {
    if (totalMs === undefined) return
    this.#total = setTimeout(() => this.#onTimeout('total', totalMs), totalMs)
  }

  arm(phase: TimeoutPhase, ms: number | undefined): void {
    if (ms === undefined) return
    const deadline = performance.now() + ms
    // The running timer may fire too late for a shorter limit.
    if (this.#timer !== undefined && ms < this.#limit) {
      clearTimeout(this.#timer)
      this.#timer = undefined
    }
    this.#phase = phase
    this.#limit = ms
    this.#deadline = deadline
    this.#timer ??= setTimeout(this.#look, ms)
  }

  disarm(): void {
    this.#deadline = Infinity
  }

  stop(): void {
    this.#deadline = Infinity
    clearTimeout(this.#total)
    clearTimeout(this.#timer)
    this.#total = this.#timer = undefined
  }

  readonly #look = (): void => {
    this.#timer = undefined
    if (this.#deadline === Infinity) return
    const rest = this.#deadline - performance.now()
    // Timers may fire a fraction early.
    if (rest > 1) this.#timer = setTimeout(this.#look, rest)
    else this.#onTimeout(this.#phase, this.#limit)
  }
}

/** Waits, or rejects with the signal's reason as soon as that aborts. */
export function sleep(ms: number, signal: AbortSignal): Promise<void> {
  let timer: ReturnType<typeof setTimeout>
  const waited = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms)
  })
  return untilAborted(signal, waited).finally(() => clearTimeout(timer))
}
