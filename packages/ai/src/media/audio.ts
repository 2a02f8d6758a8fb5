import type { AudioBlock } from '../content.ts'
import { ByteMedia, readMedia } from './byte-media.ts'
import { base64Bytes, type ReadOptions } from './media-error.ts'

/** Sound. It is an `AudioBlock` itself, so it can stand in a message as it is. */
export class Audio extends ByteMedia<'audio'> implements AudioBlock {
  /** The type is read from the bytes where it is not given, and must fit them where it is. */
  static fromBytes(data: Uint8Array, mimeType?: string): Audio {
    return new Audio('audio', data, { mimeType })
  }

  static fromBase64(base64: string, mimeType?: string): Audio {
    return Audio.fromBytes(base64Bytes(base64), mimeType)
  }

  static async fromPath(path: string, options?: ReadOptions): Promise<Audio> {
    return new Audio('audio', ...(await readMedia(path, options)))
  }
}
