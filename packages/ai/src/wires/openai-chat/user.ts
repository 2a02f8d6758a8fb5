import { encodeBase64, type JsonObject } from '@skein/base'
import type { DocumentBlock, UserContent } from '../../contract/content.ts'
import type { UserMessage } from '../../contract/message.ts'
import { audioFormat, imageUrl, toDataUrl } from '../data-url.ts'
import { invalidRequest } from '../wire-error.ts'
import { optionsOf } from '../wire-options.ts'
import type { ChatMedia } from './dialect.ts'
import type { ChatTarget } from './request.ts'

/**
 * One text is sent as a string, which every server of this format takes; else as parts. Metadata
 * of the message for this vendor joins it, e.g. `{ name: 'Ada' }`.
 */
export function encodeUser(message: UserMessage, target: ChatTarget): JsonObject {
  const options = optionsOf(message.metadata, target.provider)
  const [first] = message.content
  const isPlain =
    message.content.length === 1 &&
    first?.type === 'text' &&
    first.metadata?.[target.provider] === undefined
  const content = isPlain ? first.text : message.content.map((block) => encodePart(block, target))
  return { role: 'user', content, ...options }
}

/**
 * One block as a content part. Metadata of the block for this vendor joins the part, e.g.
 * `{ prompt_cache_breakpoint: … }`; an image's `detail` goes beside its address.
 */
export function encodePart(block: UserContent, target: ChatTarget): JsonObject {
  const { detail, ...options } = optionsOf(block.metadata, target.provider) ?? {}
  return { ...partOf(block, detail ? { detail } : {}, target), ...options }
}

function partOf(block: UserContent, detail: JsonObject, target: ChatTarget): JsonObject {
  switch (block.type) {
    case 'text':
      return { type: 'text', text: block.text }
    case 'image':
      accept('image', target)
      return { type: 'image_url', image_url: { url: imageUrl(block), ...detail } }
    case 'audio':
      accept('audio', target)
      return {
        type: 'input_audio',
        input_audio: { data: encodeBase64(block.data), format: audioFormat(block.mimeType) },
      }
    case 'document':
      return documentPart(block, target)
    case 'video':
      accept('video', target)
      return { type: 'video_url', video_url: { url: toDataUrl(block.mimeType, block.data) } }
    case 'binary':
      accept('document', target)
      return filePart('file', toDataUrl(block.mimeType, block.data))
    default:
      return block satisfies never
  }
}

function documentPart({ source, mimeType, title }: DocumentBlock, target: ChatTarget): JsonObject {
  if (source.type === 'text') {
    return { type: 'text', text: title === undefined ? source.data : `${title}\n\n${source.data}` }
  }
  accept('document', target)
  const name = title ?? (mimeType === 'application/pdf' ? 'document.pdf' : 'document')
  const { documentUrl } = target.dialect
  if (documentUrl === 'document_url') {
    const url = source.type === 'url' ? source.url : toDataUrl(mimeType, source.data)
    return { type: 'document_url', document_url: url, document_name: name }
  }
  if (source.type === 'base64') return filePart(name, toDataUrl(mimeType, source.data))
  if (documentUrl === 'file_data') return filePart(name, source.url)
  throw invalidRequest(
    target.provider,
    `${target.provider} does not take documents by address in Chat Completions.`,
    'Load the document and send it as base64, or use a vendor or API that fetches addresses.',
  )
}

function filePart(filename: string, data: string): JsonObject {
  return { type: 'file', file: { filename, file_data: data } }
}

function accept(kind: ChatMedia, target: ChatTarget): void {
  if (target.dialect.media.includes(kind)) return
  throw invalidRequest(target.provider, `${target.provider} does not take ${kind} input.`)
}
