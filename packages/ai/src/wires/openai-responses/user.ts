import type { JsonObject } from '@skein/base'
import type { DocumentBlock, UserContent } from '../../contract/content.ts'
import type { UserMessage } from '../../contract/message.ts'
import { imageUrl, toDataUrl } from '../data-url.ts'
import { invalidRequest } from '../wire-error.ts'
import { optionsOf } from '../wire-options.ts'
import type { ResponsesTarget } from './request.ts'

export function encodeUser(message: UserMessage, target: ResponsesTarget): JsonObject {
  const content = message.content.map((block) => encodePart(block, target))
  return { type: 'message', role: 'user', content, ...optionsOf(message.metadata, target.provider) }
}

/** One block as an input part. Metadata of the block for this vendor joins the part, e.g. `{ detail: 'low' }`. */
export function encodePart(block: UserContent, target: ResponsesTarget): JsonObject {
  return { ...partOf(block, target), ...optionsOf(block.metadata, target.provider) }
}

function partOf(block: UserContent, target: ResponsesTarget): JsonObject {
  switch (block.type) {
    case 'text':
      return { type: 'input_text', text: block.text }
    case 'image':
      accept('image', block.type, target)
      return { type: 'input_image', image_url: imageUrl(block) }
    case 'document':
      return documentPart(block, target)
    case 'binary':
      accept('document', block.type, target)
      return filePart('file', toDataUrl(block.mimeType, block.data))
    case 'audio':
    case 'video':
      throw refused(block.type, target)
    default:
      return block satisfies never
  }
}

function documentPart(
  { source, mimeType, title }: DocumentBlock,
  target: ResponsesTarget,
): JsonObject {
  if (source.type === 'text') {
    const text = title === undefined ? source.data : `${title}\n\n${source.data}`
    return { type: 'input_text', text }
  }
  accept('document', 'document', target)
  if (source.type === 'url') {
    return { type: 'input_file', file_url: source.url, ...(title && { filename: title }) }
  }
  const name = title ?? (mimeType === 'application/pdf' ? 'document.pdf' : 'document')
  return filePart(name, toDataUrl(mimeType, source.data))
}

function filePart(filename: string, data: string): JsonObject {
  return { type: 'input_file', filename, file_data: data }
}

function accept(kind: 'image' | 'document', named: string, target: ResponsesTarget): void {
  if (!target.dialect.media.includes(kind)) throw refused(named, target)
}

function refused(named: string, { provider }: ResponsesTarget): Error {
  return invalidRequest(provider, `${provider} does not take ${named} input through Responses.`)
}
