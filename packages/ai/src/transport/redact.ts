import { redactSecrets } from '@skein/base'
import { UPPError, type UPPErrorOptions } from '../contract/error.ts'

/** Fields that the transport adds to an error if they are missing. */
export type ErrorFacts = Pick<UPPErrorOptions, 'requestId' | 'rateLimit' | 'retryAfterMs'>

/**
 * Returns a copy of the error without the secrets and with missing `facts` added; the error itself if
 * nothing changes.
 */
export function redactUPPError(
  error: UPPError,
  secrets: readonly string[],
  facts: ErrorFacts = {},
): UPPError {
  const hasNewFacts = Object.entries(facts).some(
    ([name, value]) => value !== undefined && error[name as keyof ErrorFacts] === undefined,
  )
  if (!hasNewFacts && !holdsSecret(error, secrets)) return error
  const clean = <T extends string | undefined>(text: T): T =>
    (text === undefined ? text : redactSecrets(text, secrets)) as T // undefined stays undefined
  const limits = error.rateLimit ?? facts.rateLimit
  const rateLimit = limits && Object.entries(limits).map(([name, value]) => [name, clean(value)])
  const copy = new UPPError(clean(error.message), {
    ...error,
    cause: redactCause(error.cause, secrets),
    hint: clean(error.hint),
    vendorCode: clean(error.vendorCode),
    vendorType: clean(error.vendorType),
    requestId: clean(error.requestId ?? facts.requestId),
    retryAfterMs: error.retryAfterMs ?? facts.retryAfterMs,
    rateLimit: rateLimit && Object.fromEntries(rateLimit),
    body: clean(error.body),
  })
  copy.turn = error.turn
  if (error.stack !== undefined) copy.stack = clean(error.stack)
  return copy
}

/** Returns a copy of the cause without the secrets, or the cause itself if it contains none. */
export function redactCause(cause: unknown, secrets: readonly string[]): unknown {
  if (!holdsSecret(cause, secrets)) return cause
  if (typeof cause === 'string') return redactSecrets(cause, secrets)
  if (!(cause instanceof Error)) return new Error('The cause held a secret and was left out.')
  const copy: Error & { code?: unknown; errors?: unknown } = new Error(
    redactSecrets(cause.message, secrets),
  )
  const { code, errors } = cause as { code?: unknown; errors?: unknown }
  Object.defineProperty(copy, 'name', { value: cause.name, configurable: true, writable: true })
  if (cause.stack !== undefined) copy.stack = redactSecrets(cause.stack, secrets)
  if (typeof code === 'string' || typeof code === 'number') copy.code = code
  if (Array.isArray(errors)) copy.errors = errors.map((error) => redactCause(error, secrets))
  if (cause.cause !== undefined) copy.cause = redactCause(cause.cause, secrets)
  return copy
}

/**
 * A cause with more objects than this is treated as containing a secret, because checking it takes too
 * long.
 */
const MAX_NODES = 2000

/**
 * Checks whether any text in a value contains a secret. All texts are joined and searched once,
 * because preparing the encoded forms of a secret costs more than the search.
 */
function holdsSecret(root: unknown, secrets: readonly string[]): boolean {
  if (secrets.length === 0) return false
  const texts: string[] = []
  const visited = new Set<object>()
  const pending: unknown[] = [root]
  while (pending.length > 0) {
    const node = pending.pop()
    if (typeof node === 'string') texts.push(node)
    else if (typeof node === 'object' && node !== null && !visited.has(node)) {
      if (visited.size === MAX_NODES) return true
      visited.add(node)
      if (ArrayBuffer.isView(node)) continue
      if (node instanceof Error) pending.push(node.message, node.stack)
      if (node instanceof URL) pending.push(node.href)
      if (node instanceof Map || node instanceof Headers || node instanceof URLSearchParams) {
        for (const [name, value] of node) pending.push(name, value)
      }
      for (const key of Reflect.ownKeys(node)) {
        pending.push(Object.getOwnPropertyDescriptor(node, key)?.value)
      }
    }
  }
  const all = texts.join('\0')
  return redactSecrets(all, secrets) !== all
}
