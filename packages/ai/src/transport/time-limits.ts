import { defaultInputLimits, type InputLimits, untilAborted } from '@skein/base'
import { positive } from '../contract/error.ts'
import type { ProviderConfig } from '../contract/provider.ts'
import type { ErrorContext } from './endpoint.ts'

/**
 * The limits of one attempt, in milliseconds and bytes. An undefined `totalMs` means no limit, an
 * undefined `connectMs` the limit of the transport.
 */
export interface CallLimits extends InputLimits {
  readonly totalMs: number | undefined
  readonly connectMs: number | undefined
  readonly headersMs: number
  readonly firstByteMs: number
  readonly idleMs: number
}

/**
 * The default limits: long enough for slow reasoning without streaming, short enough that no call hangs
 * for ever.
 */
const DEFAULT_HEADERS_MS = 600_000
const DEFAULT_IDLE_MS = 300_000

/**
 * The longest delay of a timer. A longer delay would fire immediately, because platforms store it in 32 bits.
 */
const MAX_TIMER_MS = 2 ** 31 - 1

/** Checks the limits of a configuration and fills in the defaults. */
export function limitsOf(config: ProviderConfig, context: ErrorContext): CallLimits {
  const { timeout, timeouts } = config
  const ms = (name: string, value: unknown): number | undefined =>
    value === undefined
      ? undefined
      : Math.min(positive(`config.${name}`, value, context), MAX_TIMER_MS)
  const inputLimits: Record<keyof InputLimits, number> = { ...defaultInputLimits }
  for (const name of Object.keys(inputLimits) as (keyof InputLimits)[]) {
    const limit = (config as Partial<InputLimits>)[name]
    if (limit !== undefined) inputLimits[name] = positive(`config.${name}`, limit, context)
  }
  const idleMs = ms('timeouts.idleMs', timeouts?.idleMs) ?? DEFAULT_IDLE_MS
  return {
    totalMs: ms('timeout', timeout) ?? ms('timeouts.totalMs', timeouts?.totalMs),
    connectMs: ms('timeouts.connectMs', timeouts?.connectMs),
    headersMs: ms('timeouts.headersMs', timeouts?.headersMs) ?? DEFAULT_HEADERS_MS,
    firstByteMs: ms('timeouts.firstByteMs', timeouts?.firstByteMs) ?? idleMs,
    idleMs,
    ...inputLimits,
  }
}

/** Waits `ms` milliseconds, at most the longest delay of a timer; rejects with the signal's reason as soon as the signal aborts. */
export function sleep(ms: number, signal: AbortSignal): Promise<void> {
  let timer: ReturnType<typeof setTimeout>
  const delay = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, Math.min(ms, MAX_TIMER_MS))
  })
  return untilAborted(signal, delay).finally(() => clearTimeout(timer))
}
