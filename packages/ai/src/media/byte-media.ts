import { encodeBase64 } from '@skein/base'
import type { AudioBlock, VideoBlock } from '../contract/content.ts'
import { base64Bytes, checkedType, type MediaReadOptions } from './media-type.ts'
import { readFileBytes } from './read-file-node.ts'

/** The common part of `Audio` and `Video`: bytes of a checked type. Frozen. */
abstract class ByteMedia<Kind extends 'audio' | 'video'> {
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

  /** Returns a plain block. */
  toBlock(): { readonly type: Kind; readonly data: Uint8Array; readonly mimeType: string } {
    const { type, data, mimeType } = this
    return { type, data, mimeType }
  }
}

/** Reads a media file, on platforms that have files. */
async function readMedia(
  path: string,
  { mimeType, maxBytes }: MediaReadOptions = {},
): Promise<[Uint8Array, { mimeType: string | undefined; name: string }]> {
  return [await readFileBytes(path, maxBytes), { mimeType, name: path }]
}

/** Audio data. It is an `AudioBlock` itself, so it can be used directly in a message. */
export class Audio extends ByteMedia<'audio'> implements AudioBlock {
  /** Without `mimeType` the type is read from the bytes; a given type must match them. */
  static fromBytes(data: Uint8Array, mimeType?: string): Audio {
    return new Audio('audio', data, { mimeType })
  }

  static fromBase64(base64: string, mimeType?: string): Audio {
    return Audio.fromBytes(base64Bytes(base64), mimeType)
  }

  static async fromPath(path: string, options?: MediaReadOptions): Promise<Audio> {
    return new Audio('audio', ...(await readMedia(path, options)))
  }
}

/** Video data. It is a `VideoBlock` itself, so it can be used directly in a message. */
export class Video extends ByteMedia<'video'> implements VideoBlock {
  /** Without `mimeType` the type is read from the bytes; a given type must match them. */
  static fromBytes(data: Uint8Array, mimeType?: string): Video {
    return new Video('video', data, { mimeType })
  }

  static fromBase64(base64: string, mimeType?: string): Video {
    return Video.fromBytes(base64Bytes(base64), mimeType)
  }

  static async fromPath(path: string, options?: MediaReadOptions): Promise<Video> {
    return new Video('video', ...(await readMedia(path, options)))
  }
}
