import { encodeBase64 } from '@skein/base'
import { checkedType, type ReadOptions } from './media-error.ts'
import { readFileBytes } from './read-file-node.ts'

/** What sound and film share: bytes of a checked type. Frozen. */
export abstract class ByteMedia<Kind extends 'audio' | 'video'> {
  readonly type: Kind
  readonly data: Uint8Array
  readonly mimeType: string

  constructor(
    type: Kind,
    data: Uint8Array,
    options: { mimeType?: string | undefined; name?: string },
  ) {
    this.type = type
    this.data = data
    this.mimeType = checkedType(data, type, options)
    Object.freeze(this)
  }

  toBytes(): Uint8Array {
    return this.data
  }

  toBase64(): string {
    return encodeBase64(this.data)
  }

  /** A plain block. */
  toBlock(): { readonly type: Kind; readonly data: Uint8Array; readonly mimeType: string } {
    const { type, data, mimeType } = this
    return { type, data, mimeType }
  }
}

/** Reads a file for one of the classes, where the platform has files. */
export async function readMedia(
  path: string,
  { mimeType, maxBytes }: ReadOptions = {},
): Promise<[Uint8Array, { mimeType: string | undefined; name: string }]> {
  return [await readFileBytes(path, maxBytes), { mimeType, name: path }]
}
