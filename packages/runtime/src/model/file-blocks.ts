import type { TextBlock } from '@skein/ai'
import { isPlainObject, type JsonObject } from '@skein/base'
import type { FileStat } from '../contract/thread-state.ts'
import type { MediaKind } from './media-in-messages.ts'

/** A reference to a file of the thread, as messages contain it. The log has such references, never the bytes. */
export type FileReference = Pick<FileStat, 'path' | 'mediaType' | 'sizeBytes' | 'hash'>

/** Returns the text block that names a file; `withMedia` adds the content of the file after it. */
export function fileBlock(
  { path, mediaType, sizeBytes, hash }: FileReference,
  {
    before = '',
    note,
    isListed = false,
  }: {
    readonly before?: string
    readonly note?: string | undefined
    /** Whether the text of the message already names the file; a request then has only the file's content. */
    readonly isListed?: boolean
  } = {},
): TextBlock {
  const why = note === undefined ? '' : `: not shown, because ${note}`
  const text = `${before}${path} (${mediaType}, ${sizeBytes} bytes)${why}`
  const file = { path, mediaType, sizeBytes, hash }
  return { type: 'text', text, metadata: { skein: isListed ? { file, isListed } : { file } } }
}

/** Returns the file to which a block of a message, or an item of a tool's result, refers. */
export function fileIn(item: unknown): FileReference | undefined {
  if (!isPlainObject(item)) return undefined
  const { metadata, $file } = item as { metadata?: { skein?: JsonObject }; $file?: unknown }
  const file = $file ?? metadata?.skein?.['file']
  if (!isPlainObject(file)) return undefined
  const { path, mediaType, sizeBytes, hash } = file
  const isWhole = [path, mediaType, hash].every((one) => typeof one === 'string')
  return isWhole && typeof sizeBytes === 'number' ? (file as FileReference & object) : undefined
}

/** Returns the kind of media as which vendors accept a file; undefined for types that they do not accept. */
export function shownAs(mediaType: string): MediaKind | undefined {
  const type = mediaType.split(';')[0]!.trim().toLowerCase()
  if (/^image\/(png|jpe?g|gif|webp)$/.test(type)) return 'image'
  if (type === 'application/pdf') return 'document'
  return type.startsWith('audio/') ? 'audio' : type.startsWith('video/') ? 'video' : undefined
}
