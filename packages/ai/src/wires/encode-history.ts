import { isDeepFrozen } from '@skein/base'
import type { Message } from '../contract/message.ts'
import type { Warning } from '../contract/turn.ts'
import { isWhole, repairTranscript } from './transcript.ts'

/** The text of a conversation as it was last sent, and what it is the text of. */
interface Sent {
  readonly messages: readonly Message[]
  readonly text: string
  readonly warnings: readonly Warning[]
}

/** By the last message. A conversation that goes on takes its entry along, so each has one. */
const sent = new WeakMap<Message, Map<string, Sent>>()

/** How far from the end the last request's last message is looked for. */
const LOOK_BACK = 32

/** Writes messages of a whole transcript as JSON texts; what is remarkable goes to `warnings`. */
export type EncodeMessages = (messages: readonly Message[], warnings: Warning[]) => string[]

/**
 * The wire texts of a conversation, joined by commas, after repair. A conversation that only grew
 * since it was last sent is continued from there: a round of a long run writes what is new.
 * `key` as for `encodeOnce`. Only deep-frozen messages are relied on.
 */
export function encodeHistory(
  messages: readonly Message[],
  key: string,
  encode: EncodeMessages,
  warnings: Warning[],
): string {
  const known = lastSent(messages, key)
  const rest = known ? messages.slice(known.messages.length) : messages
  if (!isWhole(rest)) return encode(repairTranscript(messages, warnings), warnings).join(',')
  const found: Warning[] = known ? [...known.warnings] : []
  const added = encode(rest, found).join(',')
  const text = known?.text && added ? `${known.text},${added}` : (known?.text ?? '') + added
  for (const warning of found) warnings.push(warning)
  if (rest.every(isDeepFrozen))
    remember(key, { messages: [...messages], text, warnings: found }, known)
  return text
}

function lastSent(messages: readonly Message[], key: string): Sent | undefined {
  const end = Math.max(0, messages.length - LOOK_BACK)
  for (let index = messages.length - 1; index >= end; index--) {
    const known = sent.get(messages[index]!)?.get(key)
    if (known?.messages.length === index + 1 && startsWith(messages, known.messages)) return known
  }
  return undefined
}

function startsWith(messages: readonly Message[], start: readonly Message[]): boolean {
  for (let index = start.length - 1; index >= 0; index--)
    if (messages[index] !== start[index]) return false
  return true
}

function remember(key: string, now: Sent, before: Sent | undefined): void {
  const oldLast = before?.messages.at(-1)
  if (oldLast) sent.get(oldLast)?.delete(key)
  const last = now.messages.at(-1)
  if (!last) return
  const byKey = sent.get(last)
  if (byKey) byKey.set(key, now)
  else sent.set(last, new Map([[key, now]]))
}
