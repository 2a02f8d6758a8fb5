import type { UPPError } from './error.ts'

/** Infrastructure settings, the same for every modality and vendor (UPP §4.1). */
export interface ProviderConfig {
  /** Default: the vendor's environment variable. Resolved for every attempt. */
  readonly apiKey?: string | (() => string | Promise<string>) | KeyStrategy
  /** Replaces the vendor's versioned prefix, e.g. `https://api.openai.com/v1`. */
  readonly baseUrl?: string
  /** Longest duration in milliseconds of one attempt, body included. Default: none. */
  readonly timeout?: number
  /** Finer limits, each in milliseconds. */
  readonly timeouts?: Timeouts
  readonly fetch?: Fetch
  readonly retryStrategy?: RetryStrategy
  /** Merged with the vendor's; on conflict these win, whatever their case. */
  readonly headers?: Readonly<Record<string, string>>
  /** Largest accepted response body, or event of a stream, in bytes. Default 64 MiB. */
  readonly maxResponseBytes?: number
}

/** Limits of the phases of one attempt, in milliseconds. */
export interface Timeouts {
  /** Until the response headers. Default 10 minutes. */
  readonly headersMs?: number
  /** From the headers to the first byte of the body. Default: as `idleMs`. */
  readonly firstByteMs?: number
  /** Between two reads of the body. Default 5 minutes. */
  readonly idleMs?: number
  /** The whole attempt; the same as `timeout`. */
  readonly totalMs?: number
}

/** The part of `fetch` that is used. */
export type Fetch = (input: string, init: RequestInit) => Promise<Response>

/** Chooses the key of each attempt (UPP §4.2). */
export interface KeyStrategy {
  getKey(): string | Promise<string>
  /** Told which key an attempt failed with, so that it can be rested. */
  onKeyError?(key: string, error: UPPError): void
}

/** Decides whether and when a failed attempt is repeated (UPP §4.3). */
export interface RetryStrategy {
  /** Delay in milliseconds before the next attempt, or null to give up. `attempt` starts at 1. */
  onRetry(error: UPPError, attempt: number): number | null | Promise<number | null>
  /** Delay in milliseconds before a request is sent. */
  beforeRequest?(): number | Promise<number>
  /** Called after a success. */
  reset?(): void
}
