import { isDeepFrozen, type JsonObject } from '@skein/base'
import type { Message } from '../contract/message.ts'
import type { Warning } from '../contract/turn.ts'

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
    encoded = encodeNow(encode)
    if (byKey) byKey.set(key, encoded)
    else if (isDeepFrozen(message)) {
      byKey = new Map([[key, encoded]])
      cache.set(message, byKey)
    }
  }
  for (const warning of encoded.warnings) warnings.push(warning)
  return encoded.texts
}

function encodeNow(encode: (warnings: Warning[]) => readonly JsonObject[]): Encoded {
  const warnings: Warning[] = []
  const texts = encode(warnings).map((item) => JSON.stringify(item))
  return { texts, warnings }
}

const dialectIds = new WeakMap<object, number>()
let lastDialectId = 0

/** Tells dialects apart in a key: two vendors may share a name, not the object of their quirks. */
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
