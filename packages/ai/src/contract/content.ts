import { decodeBase64, encodeBase64, isPlainObject, type JsonObject } from '@skein/base'

/** Vendor data, one namespace per provider name (UPP §5.6.5). Unknown fields are kept as they came. */
export type ProviderMetadata = Readonly<Record<string, JsonObject>>

interface BlockBase {
  /**
   * What a vendor said about this block beyond its UPP fields. A wire keeps the verbatim vendor
   * block here as `{ [provider]: { api, native } }` and replays it to the same origin.
   */
  readonly metadata?: ProviderMetadata
}

/** Plain text. */
export interface TextBlock extends BlockBase {
  readonly type: 'text'
  readonly text: string
}

/** What the model thought before it answered. */
export interface ReasoningBlock extends BlockBase {
  readonly type: 'reasoning'
  /** Empty when the vendor only gave an opaque (redacted or encrypted) block. */
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

/** Sound; `Audio` makes one from any source. */
export interface AudioBlock extends BlockBase {
  readonly type: 'audio'
  readonly data: Uint8Array
  readonly mimeType: string
}

/** Film; `Video` makes one from any source. */
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
 * A vendor block with no UPP equivalent (a server tool call, its result, a compaction …), kept in
 * its place so that the conversation can be replayed to its origin. Other vendors skip it.
 */
export interface NativeBlock {
  readonly type: 'native'
  /** The vendor's own name of the block, e.g. `server_tool_use`. */
  readonly name: string
  readonly metadata: ProviderMetadata
}

/** What a user message may hold (UPP §6.2). */
export type UserContent =
  TextBlock | ImageBlock | DocumentBlock | AudioBlock | VideoBlock | BinaryBlock

/** What an assistant message may hold (UPP §6.3). */
export type AssistantContent =
  TextBlock | ReasoningBlock | ImageBlock | AudioBlock | VideoBlock | NativeBlock

/** Any block of any message (UPP §6.5). */
export type ContentBlock = UserContent | AssistantContent

/** What a wire stores per block, message or call under `metadata[provider]`. */
export interface NativeMetadata extends JsonObject {
  /** The wire that produced it: replay happens only to the same provider and wire. */
  readonly api: string
}

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

/** The reverse of `toBytesJson`. Throws for a mark whose text is not base64. */
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
