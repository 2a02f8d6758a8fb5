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
