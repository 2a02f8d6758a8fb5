import { isObject } from '../../is-object.ts'
import type { SystemMessage } from '../../types.ts'
import type { DataUIPart, ProviderMetadata, UIMessagePart } from './types.ts'

/** Names that our own data parts use; an event called so stays in the metadata. */
const RESERVED = /^tp-/

/** The part that shows an event: a source, provider content, or `data-NAME`. Undefined when it is not shown. */
export function eventPart(
  message: SystemMessage,
  dataId: string | undefined,
): UIMessagePart | undefined {
  const { event_type, event_data } = message
  const fields = isObject(event_data) ? event_data : {}
  switch (event_type) {
    case 'source.url':
      return sourceUrl(fields) ?? dataPart(message, dataId)
    case 'source.document':
      return sourceDocument(fields) ?? dataPart(message, dataId)
    case 'content.custom':
      return customContent(fields) ?? dataPart(message, dataId)
    default:
      return RESERVED.test(event_type) ? undefined : dataPart(message, dataId)
  }
}

function dataPart(message: SystemMessage, dataId: string | undefined): DataUIPart {
  const { event_id } = message as { event_id?: unknown }
  const id = dataId ?? (typeof event_id === 'string' ? event_id : undefined)
  const type = `data-${message.event_type}` as const
  const data = message.event_data ?? null
  return id === undefined ? { type, data } : { type, id, data }
}

function sourceUrl(fields: Fields): UIMessagePart | undefined {
  const { source_id: sourceId, url, title } = fields
  if (typeof sourceId !== 'string' || typeof url !== 'string') return undefined
  return { type: 'source-url', sourceId, url, ...text('title', title), ...metadata(fields) }
}

function sourceDocument(fields: Fields): UIMessagePart | undefined {
  const { source_id: sourceId, media_type: mediaType, title, filename } = fields
  if (typeof sourceId !== 'string' || typeof mediaType !== 'string' || typeof title !== 'string')
    return undefined
  const optional = { ...text('filename', filename), ...metadata(fields) }
  return { type: 'source-document', sourceId, mediaType, title, ...optional }
}

function customContent(fields: Fields): UIMessagePart | undefined {
  const { kind } = fields
  // The client asks for `provider.type`.
  if (typeof kind !== 'string' || !kind.includes('.')) return undefined
  return { type: 'custom', kind: kind as `${string}.${string}`, ...metadata(fields) }
}

type Fields = Readonly<Record<string, unknown>>

function text<K extends string>(key: K, value: unknown): { [key in K]?: string } {
  return (typeof value === 'string' ? { [key]: value } : {}) as { [key in K]?: string }
}

function metadata({ provider_metadata }: Fields): { providerMetadata?: ProviderMetadata } {
  return isObject(provider_metadata)
    ? { providerMetadata: provider_metadata as ProviderMetadata }
    : {}
}
