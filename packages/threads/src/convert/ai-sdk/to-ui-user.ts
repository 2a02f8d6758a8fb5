import type { MultiModalContent, UserContent, UserPromptPart } from '../../types.ts'
import { carry, without, type PartCarrier } from './carrier.ts'
import { dataUrl, mediaTypeOf } from '../bridge-media.ts'
import type { Carry } from './to-ui-parts.ts'
import type { FileUIPart, UIMessagePart } from './types.ts'

/** What a person wrote, as UI parts: one for a text, one per item of a list. */
export function userContent(part: UserPromptPart, at: string, mode: Carry): UIMessagePart[] {
  const { content } = part
  const own = (carrier: PartCarrier) =>
    mode === 'all' ? { providerMetadata: carry({ at, ...carrier }, part) } : othersOf(part)
  if (typeof content === 'string') {
    return [
      { type: 'text', text: content, ...own({ part: without(part, 'content'), from: 'content' }) },
    ]
  }
  if (!Array.isArray(content) || content.length === 0) {
    return mode === 'all' ? [{ type: 'data-tp-part', id: `tp-${at}`, data: { part } }] : []
  }
  const prompt = without(part, 'content')
  return content.flatMap((item: UserContent, index) =>
    contentItem(item, `${at}.${index}`, mode, index === 0 ? { prompt } : {}),
  )
}

function contentItem(
  item: UserContent,
  at: string,
  mode: Carry,
  extra: PartCarrier,
): UIMessagePart[] {
  const own = (carrier: PartCarrier) =>
    mode === 'all' ? { providerMetadata: carry({ at, ...extra, ...carrier }) } : othersOf(item)
  if (typeof item === 'string') return [{ type: 'text', text: item, ...own({ from: 'content' }) }]
  if (item.kind === 'text-content') {
    const metadata = own({ part: without(item, 'content'), from: 'content' })
    return [{ type: 'text', text: item.content, ...metadata }]
  }
  const file = fileOf(item)
  if (file) {
    return [{ ...file, ...own(hiddenOf(item)) }]
  }
  return mode === 'all'
    ? [{ type: 'data-tp-part', id: `tp-${at}`, data: { ...extra, part: item } }]
    : []
}

function fileOf(item: MultiModalContent): FileUIPart | undefined {
  const { filename, provider_reference } = item as Extras
  const extra = {
    ...(typeof filename === 'string' && { filename }),
    ...(provider_reference && { providerReference: provider_reference }),
  }
  if (item.kind === 'binary' && typeof item.data === 'string') {
    return {
      type: 'file',
      mediaType: item.media_type,
      url: dataUrl(item.media_type, item.data),
      ...extra,
    }
  }
  if ('url' in item && typeof item.url === 'string') {
    return { type: 'file', mediaType: mediaTypeOf(item), url: item.url, ...extra }
  }
  if (item.kind === 'uploaded-file') {
    const providerReference = { [item.provider_name]: item.file_id }
    return { type: 'file', mediaType: mediaTypeOf(item), url: '', providerReference }
  }
  return undefined
}

/** What files of a UI have and the protocol does not name. */
interface Extras {
  readonly filename?: string
  readonly provider_reference?: Record<string, string>
}

/** The item without the bytes or address that its URL shows; whole when its base64 is of the other alphabet. */
function hiddenOf(item: MultiModalContent): PartCarrier {
  if (item.kind === 'uploaded-file') return { part: item }
  if (item.kind !== 'binary') return { part: without(item, 'url'), from: 'url' }
  return /[-_]/.test(item.data) ? { part: item } : { part: without(item, 'data'), from: 'data' }
}

function othersOf(value: unknown): object {
  const metadata = (value as { provider_metadata?: object } | null)?.provider_metadata
  return metadata ? { providerMetadata: metadata } : {}
}
