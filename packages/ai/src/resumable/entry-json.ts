import { isPlainObject, SkeinError } from '@skein/base'
import { fromBytesJson, toBytesJson } from '../bytes-json.ts'
import { ErrorCode, isUPPError, UPPError, type Modality } from '../error.ts'
import type { StreamEvent } from '../event.ts'
import { messageOf } from '../to-upp-error.ts'

/** An event as text, bytes included. What a tool returned may be no JSON; that part is left out. */
export function eventToText(event: StreamEvent): string {
  try {
    return JSON.stringify(toBytesJson(event))
  } catch {
    // A BigInt or a cycle in the result of a tool: the model gets its text, readers of events do not.
    return JSON.stringify({ ...event, delta: { ...event.delta, result: null } })
  }
}

export function eventFromText(text: string): StreamEvent {
  return fromBytesJson(JSON.parse(text)) as StreamEvent // written by `eventToText`
}

const upp = ['provider', 'modality', 'statusCode', 'vendorCode', 'vendorType', 'requestId'] as const

/** What a reader elsewhere is told: code, words and facts, never the stack, the cause or the body. */
export function failureToText(error: unknown): string {
  const json = SkeinError.is(error)
    ? error.toJSON()
    : { code: ErrorCode.ProviderError, message: messageOf(error) }
  const facts: Record<string, unknown> = { provider: 'skein', modality: 'llm' }
  if (isUPPError(error)) {
    for (const field of upp) if (error[field] !== undefined) facts[field] = error[field]
    if (error.retryAfterMs !== undefined) facts['retryAfterMs'] = error.retryAfterMs
  }
  return JSON.stringify({ ...facts, ...json })
}

/** The same error again, typed: a `UPPError` for its codes, else a `SkeinError`. */
export function failureFromText(text: string): SkeinError {
  const json: unknown = JSON.parse(text)
  const { code, message, hint, ...facts } = isPlainObject(json) ? json : {}
  const words = typeof message === 'string' ? message : 'The stream failed.'
  const given = typeof hint === 'string' ? hint : undefined
  const known = Object.values(ErrorCode).find((one) => one === code)
  if (!known) return new SkeinError(words, { code: String(code), hint: given })
  return new UPPError(words, {
    ...facts,
    code: known,
    provider: String(facts['provider']),
    modality: facts['modality'] as Modality, // written by `failureToText`
    hint: given,
  })
}
