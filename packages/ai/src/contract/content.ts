import {
  decodeBase64,
  encodeBase64,
  isPlainObject,
  type JsonObject,
  wellFormed,
  wellFormedJson,
} from '@skein/base'

/** Vendor data, with one key per provider name (UPP §5.6.5). Unknown fields are kept unchanged. */
export type ProviderMetadata = Readonly<Record<string, JsonObject>>

interface BlockBase {
  /**
   * Vendor data of this block that has no UPP field. The code of a vendor format stores the unchanged vendor
   * block here as `{ [provider]: { api, native } }` and sends it back to the same vendor.
   */
  readonly metadata?: ProviderMetadata
}

/** Plain text. */
export interface TextBlock extends BlockBase {
  readonly type: 'text'
  readonly text: string
}

/** The reasoning that a model produced before its answer. */
export interface ReasoningBlock extends BlockBase {
  readonly type: 'reasoning'
  /** Empty when the vendor returned the reasoning only redacted or encrypted. */
  readonly text: string
}

/** Where the data of an image is. */
export type ImageSource =
  | { readonly type: 'base64'; readonly data: string }
  | { readonly type: 'url'; readonly url: string }
  | { readonly type: 'bytes'; readonly data: Uint8Array }

/** An image; `Image` makes one from any source. */
export interface ImageBlock extends BlockBase {
  readonly type: 'image'
  readonly source: ImageSource
  readonly mimeType: string
}

/** Where the data of a document is. */
export type DocumentSource =
  | { readonly type: 'base64'; readonly data: string }
  | { readonly type: 'url'; readonly url: string }
  | { readonly type: 'text'; readonly data: string }

/** A document; `Document` makes one from any source. */
export interface DocumentBlock extends BlockBase {
  readonly type: 'document'
  readonly source: DocumentSource
  readonly mimeType: string
  readonly title?: string
}

/** An audio recording; `Audio` makes one from any source. */
export interface AudioBlock extends BlockBase {
  readonly type: 'audio'
  readonly data: Uint8Array
  readonly mimeType: string
}

/** A video; `Video` makes one from any source. */
export interface VideoBlock extends BlockBase {
  readonly type: 'video'
  readonly data: Uint8Array
  readonly mimeType: string
}

/** Arbitrary bytes. Allowed in user content only (UPP §6.5). */
export interface BinaryBlock extends BlockBase {
  readonly type: 'binary'
  readonly data: Uint8Array
  readonly mimeType: string
}

/**
 * A vendor block with no UPP equivalent (a server tool call, its result, a compaction …). It keeps its
 * position so that the conversation can be sent back to the same vendor. Other vendors skip it.
 */
export interface NativeBlock {
  readonly type: 'native'
  /** The vendor's own name of the block, e.g. `server_tool_use`. */
  readonly name: string
  readonly metadata: ProviderMetadata
}

/** The blocks that a user message may contain (UPP §6.2). */
export type UserContent =
  TextBlock | ImageBlock | DocumentBlock | AudioBlock | VideoBlock | BinaryBlock

/** The blocks that an assistant message may contain (UPP §6.3). */
export type AssistantContent =
  TextBlock | ReasoningBlock | ImageBlock | AudioBlock | VideoBlock | NativeBlock

/** Any block of any message (UPP §6.5). */
export type ContentBlock = UserContent | AssistantContent

/** The types of blocks by name. */
export const ContentBlockType = {
  Text: 'text',
  Reasoning: 'reasoning',
  Image: 'image',
  Document: 'document',
  Audio: 'audio',
  Video: 'video',
  Binary: 'binary',
  Native: 'native',
} as const
/** The type of a block. */
export type ContentBlockType = (typeof ContentBlockType)[keyof typeof ContentBlockType]

/**
 * Converts bytes inside a value to JSON. A `Uint8Array` at any depth becomes `{ "$bytes": "<base64>" }`. An
 * object whose only key is already `$bytes` or `$escaped` is wrapped as `{ "$escaped": … }`, so that every
 * value can be restored exactly. Parts without bytes are shared, not copied.
 */
export function toBytesJson(value: unknown): unknown {
  if (value instanceof Uint8Array) return { $bytes: encodeBase64(value) }
  if (Array.isArray(value)) return mapArray(value, toBytesJson)
  if (!isData(value)) return value
  const mapped = mapObject(value, toBytesJson)
  return isMark(value) ? { $escaped: mapped } : mapped
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
    // An assignment would set the prototype if the key is `__proto__`, so the property is defined.
    Object.defineProperty(copy, key, {
      value: mapped,
      enumerable: true,
      writable: true,
      configurable: true,
    })
  }
  return copy ?? object
}

/**
 * Converts a tool's result to the text that a model reads: a string unchanged, undefined as `''`,
 * everything else as JSON. Bytes are replaced by their size, errors by their name and message. Never
 * throws.
 */
export function resultText(result: unknown): string {
  if (typeof result === 'string') return wellFormed(result)
  try {
    // `this[key]` is the value before `toJSON`, which for a Buffer would list every byte.
    const readable = function (
      this: Record<string, unknown>,
      key: string,
      value: unknown,
    ): unknown {
      const original = this[key]
      if (ArrayBuffer.isView(original) || original instanceof ArrayBuffer) {
        return `[binary data, ${original.byteLength} bytes]`
      }
      if (original instanceof Error) return { name: original.name, message: original.message }
      if (typeof value === 'bigint') return value.toString()
      const bytes = bytesInJson(value)
      return bytes ? `[binary data, ${bytes.byteLength} bytes]` : value
    }
    return wellFormedJson(JSON.stringify(result, readable) ?? '')
  } catch (error) {
    return `[The result cannot be written as JSON: ${(error as Error).message.split('\n')[0]}]`
  }
}
