import { canonicalJson, isPlainObject, type JsonValue, tryParseJson } from '@skein/base'

/** One change of the world: a request that was answered, a line of a file, a tool of Skein that returned. */
export interface Effect {
  /** What it does, without its body: `POST http://bank.test/refunds`. */
  readonly action: string
  /** The body, in one form for equal JSON; empty without one. */
  readonly body: string
  /** The value of an idempotency header. Requests with the same value count as one. */
  readonly idempotencyKey?: string
}

/** An effect as text, for tables. It identifies the effect. */
export function describeEffect({ action, body }: Effect): string {
  return body === '' ? action : `${action} ${body}`
}

/** Brings a body into the form in which bodies are compared. `ignoredFields` are left out of JSON, at any depth. */
export function comparableBody(text: string, ignoredFields: readonly string[]): string {
  const value = tryParseJson(text)
  if (typeof value !== 'object' || value === null) return text
  return canonicalJson(without(value as JsonValue, new Set(ignoredFields)))
}

function without(value: JsonValue, fields: ReadonlySet<string>): JsonValue {
  if (Array.isArray(value)) return value.map((one: JsonValue) => without(one, fields))
  if (!isPlainObject(value)) return value
  const entries = Object.entries(value as Readonly<Record<string, JsonValue>>)
  return Object.fromEntries(
    entries
      .filter(([name]) => !fields.has(name))
      .map(([name, one]) => [name, without(one, fields)]),
  )
}
