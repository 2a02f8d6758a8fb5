import type { VideoBlock } from '../content.ts'
import { ByteMedia, readMedia } from './byte-media.ts'
import { base64Bytes, type ReadOptions } from './media-error.ts'

/** A film. It is a `VideoBlock` itself, so it can stand in a message as it is. */
export class Video extends ByteMedia<'video'> implements VideoBlock {
  /** The type is read from the bytes where it is not given, and must fit them where it is. */
  static fromBytes(data: Uint8Array, mimeType?: string): Video {
    return new Video('video', data, { mimeType })
  }

  static fromBase64(base64: string, mimeType?: string): Video {
    return Video.fromBytes(base64Bytes(base64), mimeType)
  }

  static async fromPath(path: string, options?: ReadOptions): Promise<Video> {
    return new Video('video', ...(await readMedia(path, options)))
  }
}
