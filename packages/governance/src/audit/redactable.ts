import {
  canonicalJson,
  encodeBase64Url,
  type JsonObject,
  type JsonValue,
  SkeinError,
} from '@skein/base'
import { type Hash, hashText } from '../contract/envelope.ts'
import type { PayloadStore } from '../contract/evidence.ts'

/** The name of the only member of the object that replaces a committed value. */
const COMMITMENT = 'uaicp:commitment'

/** Options of `commitFields`. */
export interface CommitOptions {
  /** JSON pointers (RFC 6901) of the fields that must be erasable later. */
  readonly fields: readonly string[]
  readonly store: PayloadStore
  /** Returns the salt of one field; by default 16 bytes from the secure random generator. */
  readonly salt?: () => Uint8Array
}

/**
 * Replaces each field by a commitment, the hash of its value and a random salt, and stores value and salt
 * in the payload store under this hash. The result may be hashed, logged and shown to auditors, because a
 * commitment reveals nothing without the stored salt. Erasing the payload in the store therefore erases
 * the field, while every hash over the result stays valid.
 */
export async function commitFields(value: JsonValue, options: CommitOptions): Promise<JsonValue> {
  const { fields, store } = options
  const { salt = () => crypto.getRandomValues(new Uint8Array(16)) } = options
  const copy = structuredClone(value)
  const holder = { '': copy }
  for (const field of fields) {
    const { parent, key } = locate(holder, field)
    const item = parent[key]
    if (item === undefined) continue
    const text = canonicalJson({ salt: encodeBase64Url(salt()), value: item })
    const commitment = hashText(text)
    await store.put(commitment, text, { durable: true })
    parent[key] = { [COMMITMENT]: commitment }
  }
  return holder['']
}

/** Replaces commitments by their values from the store. A field that was erased stays a commitment. */
export async function openFields(value: JsonValue, store: PayloadStore): Promise<JsonValue> {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return Promise.all(value.map((item) => openFields(item, store)))
  // The cast is needed because the compiler does not see that Array.isArray excludes readonly arrays.
  const commitment = commitmentIn(value as JsonObject)
  if (commitment !== undefined) {
    const text = await store.get(commitment)
    if (text === undefined) return value
    if (hashText(text) !== commitment)
      throw new SkeinError(`The payload stored under ${commitment} has another hash.`, {
        code: 'COMMITMENT_MISMATCH',
        hint: 'The payload was changed after it was stored. Treat it as lost.',
      })
    return (JSON.parse(text) as { value: JsonValue }).value
  }
  const members = Object.entries(value).map(
    async ([name, member]) =>
      [name, member === undefined ? member : await openFields(member, store)] as const,
  )
  return Object.fromEntries(await Promise.all(members))
}

function commitmentIn(value: JsonObject): Hash | undefined {
  const commitment = value[COMMITMENT]
  const isAlone = Object.keys(value).length === 1
  return isAlone && typeof commitment === 'string' && /^sha256:[0-9a-f]{64}$/.test(commitment)
    ? (commitment as Hash)
    : undefined
}

/**
 * Finds the object or array that contains a field, and the key of the field in it. Throws if there is no
 * such object or array.
 */
function locate(
  holder: JsonObject,
  pointer: string,
): { parent: Record<string, JsonValue>; key: string } {
  const keys = pointer.split('/').map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
  const key = keys.pop() ?? ''
  let parent: JsonValue = holder
  for (const name of pointer === '' ? [] : keys) parent = (parent as JsonObject)?.[name] ?? null
  if (typeof parent !== 'object' || parent === null) {
    throw new SkeinError(`The value has no field "${pointer}".`, {
      code: 'FIELD_UNKNOWN',
      hint: 'Fields are JSON pointers, such as "/customer/name".',
    })
  }
  // The cast also covers arrays, which can be indexed by text like an object.
  return { parent: parent as Record<string, JsonValue>, key }
}
