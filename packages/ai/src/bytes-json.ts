import { decodeBase64, encodeBase64, isPlainObject } from '@skein/base'

/**
 * Bytes inside JSON. A `Uint8Array` at any depth becomes `{ "$bytes": "<base64>" }`; an object that
 * already looks like one of our two marks is wrapped as `{ "$escaped": … }`, so that every value
 * comes back as it was. Parts without bytes are shared, not copied.
 */
export function toBytesJson(value: unknown): unknown {
  if (value instanceof Uint8Array) return { $bytes: encodeBase64(value) }
  if (Array.isArray(value)) return mapArray(value, toBytesJson)
  if (!isData(value)) return value
  const mapped = mapObject(value, toBytesJson)
  return isMark(value) ? { $escaped: mapped } : mapped
}

/** What JSON writes field by field: literals, and instances of classes (an `Image`) as well. */
function isData(value: unknown): value is Record<string, unknown> {
  const tag = Object.prototype.toString.call(value)
  return tag === '[object Object]' && typeof (value as { toJSON?: unknown }).toJSON !== 'function'
}

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

/** The bytes of `{ "$bytes": "<base64>" }`; undefined for anything else. */
export function bytesInJson(value: unknown): Uint8Array | undefined {
  if (!isPlainObject(value) || !isMark(value)) return undefined
  const text = value['$bytes']
  try {
    return typeof text === 'string' ? decodeBase64(text) : undefined
  } catch {
    return undefined // data that only looks like the mark
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
    const mapped = map(item)
    if (mapped === item) return
    copy ??= [...list]
    copy[index] = mapped
  })
  return copy ?? list
}

function mapObject(object: Record<string, unknown>, map: Map): Record<string, unknown> {
  let copy: Record<string, unknown> | undefined
  for (const key of Object.keys(object)) {
    const mapped = map(object[key])
    if (mapped === object[key]) continue
    copy ??= { ...object }
    // Not by assignment: a key named __proto__ is data like any other.
    Object.defineProperty(copy, key, {
      value: mapped,
      enumerable: true,
      writable: true,
      configurable: true,
    })
  }
  return copy ?? object
}
