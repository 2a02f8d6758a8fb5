import { decodeBase64, encodeBase64, sha256Hex } from '@skein/base'
import type { BinaryContent, UrlContent, UserContent } from '../../types.ts'
import { toStandardAlphabet } from '../bridge-media.ts'
import type { UppContentBlock, UppDocumentBlock, UppImageBlock, UppMediaBlock } from './types.ts'

type Content = Exclude<UserContent, string>

/** A thread's media as a UPP block; undefined when UPP has none for it. */
export function toMediaBlock(content: Content): UppContentBlock | undefined {
  if (content.kind === 'binary') return bytesBlock(content)
  if (content.kind === 'image-url') {
    const source = { type: 'url', url: content.url } as const
    return { type: 'image', source, mimeType: content.media_type ?? 'image/*' }
  }
  if (content.kind === 'document-url') {
    const source = { type: 'url', url: content.url } as const
    return { type: 'document', source, mimeType: content.media_type ?? 'application/octet-stream' }
  }
  return undefined
}

function bytesBlock({ data, media_type: mimeType }: BinaryContent): UppContentBlock {
  const base64 = toStandardAlphabet(data)
  const [kind] = mimeType.split('/')
  if (kind === 'image') return { type: 'image', source: { type: 'base64', data: base64 }, mimeType }
  if (kind === 'audio' || kind === 'video')
    return { type: kind, data: decodeBase64(base64), mimeType }
  return { type: 'document', source: { type: 'base64', data: base64 }, mimeType }
}

/** A UPP media block as a thread's content. */
export function fromMediaBlock(
  block: UppImageBlock | UppDocumentBlock | UppMediaBlock,
): BinaryContent | UrlContent {
  const { mimeType } = block
  if (block.type !== 'image' && block.type !== 'document')
    return binary(base64Of(block.data), mimeType)
  const { source } = block
  if (source.type === 'url') {
    const kind = block.type === 'image' ? 'image-url' : 'document-url'
    return {
      kind,
      url: source.url,
      media_type: mimeType,
      identifier: sha256Hex(source.url).slice(0, 6),
    }
  }
  const data =
    source.type === 'text'
      ? encodeBase64(new TextEncoder().encode(source.data))
      : base64Of(source.data)
  return binary(data, mimeType)
}

function binary(data: string, media_type: string): BinaryContent {
  return { kind: 'binary', data, media_type, identifier: sha256Hex(data).slice(0, 6) }
}

function base64Of(data: Uint8Array | string): string {
  return typeof data === 'string' ? data : encodeBase64(data)
}
