import { encodeBase64 } from '@skein/base'
import type { MediaSource } from '../media-source.ts'
import type { GooglePart } from './types.ts'

/** Media inline or by address. */
export function mediaPart({ base64, url, mimeType }: MediaSource): GooglePart {
  return url === undefined
    ? { inlineData: { mimeType, data: base64 } }
    : { fileData: { mimeType, fileUri: url } }
}

/** Text as a file of its type. */
export function textSource({ text, mimeType }: { text: string; mimeType: string }): MediaSource {
  return {
    base64: encodeBase64(new TextEncoder().encode(text)),
    mimeType: mimeType || 'text/plain',
  }
}

export function bytesSource({
  data,
  mimeType,
}: {
  data: Uint8Array
  mimeType: string
}): MediaSource {
  return { base64: encodeBase64(data), mimeType }
}
