import { decodeBase64, type JsonObject } from '@skein/base'
import type { UserContent } from '@skein/ai'
import { HttpError } from '../http-error.ts'

/** Text and files of a message that a page sent, as blocks for a model. */
export function toUserContent(
  parts: readonly JsonObject[],
  field: string,
): readonly [UserContent, ...UserContent[]] {
  const [first, ...rest] = parts.flatMap((part, index) => toBlock(part, `${field}.parts[${index}]`))
  if (first) return [first, ...rest]
  throw invalid(field, 'has neither text nor a file')
}

function toBlock(part: JsonObject, field: string): UserContent[] {
  switch (part['type']) {
    case 'text':
      if (typeof part['text'] !== 'string') throw invalid(`${field}.text`, 'must be a string')
      return part['text'] === '' ? [] : [{ type: 'text', text: part['text'] }]
    case 'file':
      return [fileBlock(part, field)]
    default:
      return [] // data of the page is for the page
  }
}

function fileBlock({ url, mediaType, filename }: JsonObject, field: string): UserContent {
  if (typeof url !== 'string' || typeof mediaType !== 'string')
    throw invalid(field, 'must have a url and a mediaType')
  const data = /^data:[^,]*;base64,([\w+/=-]*)$/.exec(url)?.[1]
  if (data === undefined && !url.startsWith('https://'))
    throw invalid(`${field}.url`, 'must be a data: URL in base64, or begin with https://')
  const source =
    data === undefined ? ({ type: 'url', url } as const) : ({ type: 'base64', data } as const)
  if (mediaType.startsWith('image/')) return { type: 'image', source, mimeType: mediaType }
  const title = typeof filename === 'string' ? { title: filename } : {}
  if (mediaType === 'application/pdf' || mediaType.startsWith('text/'))
    return { type: 'document', source, mimeType: mediaType, ...title }
  if (data === undefined) throw invalid(`${field}.url`, 'must be a data: URL for this mediaType')
  const bytes = { data: decodeBase64(data), mimeType: mediaType }
  if (mediaType.startsWith('audio/')) return { type: 'audio', ...bytes }
  if (mediaType.startsWith('video/')) return { type: 'video', ...bytes }
  return { type: 'binary', ...bytes }
}

function invalid(field: string, message: string): HttpError {
  return new HttpError(`${field} ${message}.`, {
    code: 'INPUT_INVALID',
    problems: [{ field, message }],
  })
}
