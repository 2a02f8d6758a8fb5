/**
 * Whether a tool failed because it obeyed the signal. Clients of HTTP wrap the reason of the signal in errors of their
 * own, so the causes of the error count too. A tool that knows that it had no effect says so with `NoEffectError`.
 */
export function isAbort(cause: unknown, ...signals: readonly AbortSignal[]): boolean {
  try {
    let error = cause
    for (let depth = 0; depth < MAX_CAUSES && error !== undefined; depth++) {
      if (signals.some(({ aborted, reason }) => aborted && reason === error)) return true
      if (!(error instanceof Error)) return false
      const { code } = error as { readonly code?: unknown }
      if (code === 'NO_EFFECT') return false
      if (ABORT_NAMES.has(error.name) || ABORT_NAMES.has(error.constructor.name)) return true
      if (code === 'ERR_CANCELED') return true // axios
      error = error.cause
    }
  } catch {
    // A tool may throw a proxy that throws when it is read.
  }
  return false
}

const MAX_CAUSES = 5

/** Names of errors, or of their classes, by which clients say that a request was aborted: fetch, axios, SDKs of models. */
const ABORT_NAMES: ReadonlySet<string> = new Set([
  'AbortError',
  'TimeoutError',
  'CanceledError',
  'APIUserAbortError',
  'RequestAbortedError',
])
