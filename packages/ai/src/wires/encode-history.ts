import { isDeepFrozen, wellFormedJson } from '@skein/base'
import { extended, inPieces } from '#server'
import type { Message } from '../contract/message.ts'
import type { Warning } from '../contract/turn.ts'
import { isWhole, repairTranscript } from './transcript.ts'
import type { EncodedRequest } from './wire.ts'

/**
 * JSON texts joined by commas. A long list is kept as UTF-8, because text would be encoded anew for each
 * request. The bytes are at the start of a larger buffer, and further items are written after them.
 */
export type JsonList = string | Uint8Array<ArrayBuffer>

/** Lists with more characters than this are kept as bytes; shorter texts are sent faster than bytes. */
const MAX_TEXT = 32 * 1024

/** A conversation as it was last sent, with the messages that it was made from. */
interface Sent {
  readonly messages: readonly Message[]
  readonly list: JsonList
  readonly warnings: readonly Warning[]
}

/**
 * The sent texts by the last message of the conversation. When a conversation grows, its entry moves to
 * the new last message.
 */
const lastRequests = new WeakMap<Message, Map<string, Sent>>()

/** How many messages, counted from the end, are tried as the last message of an earlier request. */
const LOOK_BACK = 32

/** Writes messages as JSON texts; adds a warning for everything left out. */
type EncodeMessages = (messages: readonly Message[], warnings: Warning[]) => string[]

/**
 * Repairs a conversation with `repairTranscript` and writes its messages as JSON texts joined by commas. If
 * the conversation has only grown since it was last sent, the earlier text is reused and only the new
 * messages are written. `key` names all else that decides the text (see `encodeOnce`). Only texts of
 * deep-frozen messages are reused.
 */
export function encodeHistory(
  messages: readonly Message[],
  key: string,
  encode: EncodeMessages,
  warnings: Warning[],
): JsonList {
  const previous = lastSent(messages, key)
  const rest = previous ? messages.slice(previous.messages.length) : messages
  if (!isWhole(rest)) return encode(repairTranscript(messages, warnings), warnings).join(',')
  const newWarnings: Warning[] = previous ? [...previous.warnings] : []
  const newItems = encode(rest, newWarnings).join(',')
  for (const warning of newWarnings) warnings.push(warning)
  const before = previous?.list ?? ''
  // The remembered bytes are extended in place by the next request. Messages that may still change must not
  // get into them, so the text is copied instead.
  if (!rest.every(isDeepFrozen))
    return append(typeof before === 'string' ? before : decoder.decode(before), newItems)
  const list = append(before, newItems)
  remember(key, { messages: [...messages], list, warnings: newWarnings }, previous)
  return list
}

const decoder = new TextDecoder('utf-8', { ignoreBOM: true })

/** Adds items to a list. Bytes are written after those of the list, into its buffer if that has room. */
function append(list: JsonList, newItems: string): JsonList {
  if (newItems === '') return list
  const items = list.length > 0 ? `,${newItems}` : newItems
  return typeof list === 'string' && list.length + items.length <= MAX_TEXT
    ? list + items
    : extended(list, items)
}

/** Finds the longest conversation sent so far that these messages continue. */
function lastSent(messages: readonly Message[], key: string): Sent | undefined {
  const end = Math.max(0, messages.length - LOOK_BACK)
  for (let index = messages.length - 1; index >= end; index--) {
    const previous = lastRequests.get(messages[index]!)?.get(key)
    if (previous?.messages.length !== index + 1) continue
    let at = index
    while (at >= 0 && messages[at] === previous.messages[at]) at--
    if (at < 0) return previous
  }
  return undefined
}

function remember(key: string, now: Sent, before: Sent | undefined): void {
  const oldLast = before?.messages.at(-1)
  const old = oldLast && lastRequests.get(oldLast)
  if (old?.delete(key) && old.size === 0) lastRequests.delete(oldLast!)
  const last = now.messages.at(-1)
  if (!last) return
  const byKey = lastRequests.get(last)
  if (byKey) byKey.set(key, now)
  else lastRequests.set(last, new Map([[key, now]]))
}

const dialectIds = new WeakMap<object, number>()
let lastDialectId = 0

/**
 * Returns an id of a dialect for use in a key. The id belongs to the object and not to the vendor's name,
 * because two vendors may have the same name and different dialects.
 */
export function dialectKey(dialect: object): string {
  let id = dialectIds.get(dialect)
  if (id === undefined) dialectIds.set(dialect, (id = ++lastDialectId))
  return String(id)
}

/** The items of a JSON list: `first` (the system prompt), if there is one, and then those of a history. */
export interface ListItems {
  readonly first?: string | undefined
  readonly history: JsonList
}

/**
 * Returns a request whose body is the JSON text of `{ ...fields, [listField]: [items] }`. A field of the same
 * name in `fields` overrides the list, as every parameter of the caller does.
 */
export function listRequest(
  fields: Readonly<Record<string, unknown>>,
  listField: string,
  { first = '', history }: ListItems,
  rest: Omit<EncodedRequest, 'body' | 'pieces'>,
): EncodedRequest {
  const prompt = wellFormedJson(first)
  const between = prompt !== '' && history.length > 0 ? ',' : ''
  return typeof history === 'string'
    ? { body: bodyText(fields, listField, prompt + between + history), ...rest }
    : inPieces(bodyText(fields, listField, `${prompt}${between}\0`), history, rest)
}

/** Returns the JSON text of `{ ...fields, [listField]: [items] }`; see `listRequest`. */
export function bodyText(
  fields: Readonly<Record<string, unknown>>,
  listField: string,
  items: string,
): string {
  // Tools, parameters and what hooks set may have halves of surrogate pairs, too.
  const head = wellFormedJson(JSON.stringify(fields))
  if (Object.hasOwn(fields, listField) && fields[listField] !== undefined) return head
  const list = `${JSON.stringify(listField)}:[${items}]}`
  return head === '{}' ? `{${list}` : `${head.slice(0, -1)},${list}`
}
