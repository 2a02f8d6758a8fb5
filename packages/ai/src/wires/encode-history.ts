import { isDeepFrozen, type JsonObject } from '@skein/base'
import type { AssistantMessage, Message, ToolResultMessage } from '../contract/message.ts'
import type { Warning } from '../contract/turn.ts'
import { isWhole, repairTranscript } from './transcript.ts'
import type { ToolCall } from '../contract/tool.ts'

/** The text of a conversation as it was last sent, and what it is the text of. */
interface Sent {
  readonly messages: readonly Message[]
  readonly text: string
  readonly warnings: readonly Warning[]
}

/** Keyed by the last message. When a conversation grows, its entry moves to the new last message. */
const sent = new WeakMap<Message, Map<string, Sent>>()

/** How far from the end the last request's last message is looked for. */
const LOOK_BACK = 32

/** Writes messages of a repaired transcript as JSON texts; adds to `warnings` what was left out. */
type EncodeMessages = (messages: readonly Message[], warnings: Warning[]) => string[]

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

/** The longest conversation sent so far that these messages continue. */
function lastSent(messages: readonly Message[], key: string): Sent | undefined {
  const end = Math.max(0, messages.length - LOOK_BACK)
  for (let index = messages.length - 1; index >= end; index--) {
    const known = sent.get(messages[index]!)?.get(key)
    if (known?.messages.length !== index + 1) continue
    let at = index
    while (at >= 0 && messages[at] === known.messages[at]) at--
    if (at < 0) return known
  }
  return undefined
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

interface Encoded {
  readonly texts: readonly string[]
  readonly warnings: readonly Warning[]
}

/** Wire texts by message. A message is garbage-collected together with its texts. */
const cache = new WeakMap<Message, Map<string, Encoded>>()

/**
 * The wire texts of one message, made once for each `key`. Only deep-frozen messages are
 * remembered, so an edited history is always encoded anew. `key` names everything beside the
 * message that decides its wire form: provider, wire, dialect and mapped tool names.
 *
 * Warnings given by `encode` are remembered too and added to `warnings` each time.
 */
export function encodeOnce(
  message: Message,
  key: string,
  encode: (warnings: Warning[]) => readonly JsonObject[],
  warnings: Warning[] = [],
): readonly string[] {
  let byKey = cache.get(message)
  let encoded = byKey?.get(key)
  if (!encoded) {
    const own: Warning[] = []
    encoded = { texts: encode(own).map((item) => JSON.stringify(item)), warnings: own }
    if (byKey) byKey.set(key, encoded)
    else if (isDeepFrozen(message)) {
      byKey = new Map([[key, encoded]])
      cache.set(message, byKey)
    }
  }
  for (const warning of encoded.warnings) warnings.push(warning)
  return encoded.texts
}

const dialectIds = new WeakMap<object, number>()
let lastDialectId = 0

/** Identifies a dialect in a key. By object identity: two vendors may share a name, not a dialect. */
export function dialectKey(dialect: object): string {
  let id = dialectIds.get(dialect)
  if (id === undefined) dialectIds.set(dialect, (id = ++lastDialectId))
  return String(id)
}

/**
 * The JSON text of `{ ...fields, [listField]: [items] }` where the items are joined JSON texts already.
 * A field of the same name in `fields` wins, as every parameter of the caller does.
 */
export function bodyText(
  fields: Readonly<Record<string, unknown>>,
  listField: string,
  items: string,
): string {
  const head = JSON.stringify(fields)
  if (Object.hasOwn(fields, listField) && fields[listField] !== undefined) return head
  const list = `${JSON.stringify(listField)}:[${items}]}`
  return head === '{}' ? `{${list}` : `${head.slice(0, -1)},${list}`
}

/** Keys for `encodeOnce`, made once per request: a new string for each message would cost its hash. */
interface ResultKeys {
  readonly plain: string
  /** For results whose calls are all of the kind that changes how a result is written. */
  readonly marked: string
}

/** The keys of one request. */
export function resultKeys(base: string): ResultKeys {
  return { plain: base, marked: `${base} marked` }
}

/**
 * The key under which results are remembered by wires that write them with the name and id of
 * their calls. Usually the results say that themselves; else the key names the message before.
 */
export function resultKey(
  { results }: ToolResultMessage,
  before: AssistantMessage | undefined,
  { plain, marked }: ResultKeys,
  isMarked: (call: ToolCall) => boolean,
): string {
  const calls = before?.toolCalls ?? []
  let count = 0
  for (let i = 0; i < results.length; i++) {
    const call = calls[i]
    const { toolCallId, toolName } = results[i]!
    const isTold = call?.toolCallId === toolCallId && call.toolName === toolName
    if (!isTold) return `${plain} after ${before?.id}`
    if (isMarked(call)) count++
  }
  if (count === 0) return plain
  return count === results.length ? marked : `${plain} after ${before?.id}`
}
