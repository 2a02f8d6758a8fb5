import { decodeBase64, encodeBase64, isPlainObject } from '@skein/base'

/**
 * Converts bytes inside a value to JSON. A `Uint8Array` at any depth becomes `{ "$bytes": "<base64>" }`. An
 * object whose only key is already `$bytes` or `$escaped` is wrapped as `{ "$escaped": … }`, so that every
 * value can be restored exactly. Parts without bytes are shared, not copied.
 */
export function toBytesJson(value: unknown): unknown {
  if (value instanceof Uint8Array) return { $bytes: encodeBase64(value) }
  if (Array.isArray(value)) return mapArray(value, toBytesJson)
  if (!isData(value)) return value
  const json = mapObject(value, toBytesJson)
  return isMark(value) ? { $escaped: json } : json
}

/** True for objects that JSON writes field by field: object literals and class instances such as `Image`. */
function isData(value: unknown): value is Record<string, unknown> {
  const tag = Object.prototype.toString.call(value)
  return tag === '[object Object]' && typeof (value as { toJSON?: unknown }).toJSON !== 'function'
}

/** The reverse of `toBytesJson`. Throws when the text of `$bytes` is not base64. */
export function fromBytesJson(value: unknown): unknown {
  if (Array.isArray(value)) return mapArray(value, fromBytesJson)
  if (!isPlainObject(value)) return value
  if (isMark(value)) {
    if (typeof value['$bytes'] === 'string') return decodeBase64(value['$bytes'])
    const inner = value['$escaped']
    if (isPlainObject(inner)) return mapObject(inner, fromBytesJson)
  }
  return mapObject(value, fromBytesJson)
}

/** Returns the bytes of `{ "$bytes": "<base64>" }`, or undefined for anything else. */
export function bytesInJson(value: unknown): Uint8Array | undefined {
  if (!isPlainObject(value) || !isMark(value)) return undefined
  const text = value['$bytes']
  try {
    return typeof text === 'string' ? decodeBase64(text) : undefined
  } catch {
    return undefined // the text is not base64, so this is ordinary data
  }
}

function isMark(value: Record<string, unknown>): boolean {
  const keys = Object.keys(value)
  return keys.length === 1 && (keys[0] === '$bytes' || keys[0] === '$escaped')
}

type Map = (value: unknown) => unknown

function mapArray(list: readonly unknown[], map: Map): readonly unknown[] {
  let copy: unknown[] | undefined
  list.forEach((item, index) => {
    const json = map(item)
    if (json === item) return
    copy ??= [...list]
    copy[index] = json
  })
  return copy ?? list
}

function mapObject(object: Record<string, unknown>, map: Map): Record<string, unknown> {
  let copy: Record<string, unknown> | undefined
  for (const key of Object.keys(object)) {
    const json = map(object[key])
    if (json === object[key]) continue
    copy ??= { ...object }
    // An assignment would set the prototype if the key is `__proto__`, so the property is defined.
    Object.defineProperty(copy, key, {
      value: json,
      enumerable: true,
      writable: true,
      configurable: true,
    })
  }
  return copy ?? object
}
