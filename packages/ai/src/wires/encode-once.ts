import { isDeepFrozen, type JsonObject, wellFormedJson } from '@skein/base'
import type { Message } from '../contract/message.ts'
import type { Warning } from '../contract/turn.ts'

interface Encoded {
  readonly key: string
  readonly texts: readonly string[]
  readonly warnings: readonly Warning[]
  /** The same message written for another key. There is rarely one, so a linked list takes less memory than a Map. */
  readonly next: Encoded | undefined
}

/** The JSON texts of each message. They are garbage-collected together with the message. */
const cache = new WeakMap<Message, Encoded>()
const NO_WARNINGS: readonly Warning[] = []

/**
 * Writes one message as JSON texts, once for each `key`. Only deep-frozen messages are cached, so an edited
 * message is always written anew. `key` must name everything besides the message that decides its JSON:
 * provider, vendor format, dialect and mapped tool names.
 *
 * Warnings added by `encode` are cached too and added to `warnings` each time.
 */
export function encodeOnce(
  message: Message,
  key: string,
  encode: (warnings: Warning[]) => readonly JsonObject[],
  warnings: Warning[] = [],
): readonly string[] {
  const first = cache.get(message)
  let entry = first
  while (entry && entry.key !== key) entry = entry.next
  if (!entry) {
    const own: Warning[] = []
    const texts = encode(own).map((item) => wellFormedJson(JSON.stringify(item)))
    entry = { key, texts, warnings: own.length > 0 ? own : NO_WARNINGS, next: first }
    if (first || isDeepFrozen(message)) cache.set(message, entry)
  }
  for (const warning of entry.warnings) warnings.push(warning)
  return entry.texts
}
