import { isObject } from '@skein/base'
import type { UIProviderMetadata, UIJsonObject, UIMessagePart } from './types.ts'
import type { SystemMessage } from '../../document/thread.ts'

/** Our key in `providerMetadata` and `metadata`: the only places that the client keeps untouched. */
export const CARRIER = 'threadprotocol'

/**
 * What one UI part remembers of the thread. `agent_id`, `outcome` and `errors` are for everyone to see; the others are
 * written only on request, because they hold what a server may not want to show (signatures, provider ids).
 */
export interface PartCarrier {
  /** Who said it. */
  readonly agent_id?: string
  /** How a call ended, where the UI has only one word for several endings. */
  readonly outcome?: UICallOutcome
  /** The problems that a retry asks the model to correct, when they are a list. */
  readonly errors?: unknown
  /** Place in the thread: turn.message.part, or turn.part in a user turn; one more number for a content item. */
  readonly at?: string
  /** The part, or content item, without the field that the UI part itself shows. */
  readonly part?: unknown
  /** Which field that is; absent when `part` is whole. */
  readonly from?: ShownField
  /** For the first item of a content list: the prompt part around it. */
  readonly prompt?: unknown
  /** The return of a denied call, for which the UI has no place of its own. */
  readonly result?: PartCarrier
}

/** The field of a part that the UI shows, and that the carrier therefore leaves out. */
export type ShownField = 'content' | 'args' | 'transcript' | 'url' | 'data'

/** One turn in a message's metadata. */
export interface TurnCarrier {
  readonly turn_id?: string
  readonly agent_id?: string
  readonly agent_name?: string
  /** The fields below are written only on request. */
  readonly index?: number
  /** The turn without what its UI message shows. */
  readonly turn?: Readonly<Record<string, unknown>>
  /** Its messages, likewise; `shown` names the data part that holds an event's data. */
  readonly messages?: readonly Readonly<Record<string, unknown>>[]
}

/** Our share of a message's metadata. */
export interface MessageCarrier {
  readonly turns?: readonly TurnCarrier[]
  /** The thread's own fields, on the first message. */
  readonly thread?: Readonly<Record<string, unknown>>
}

/** The endings that a UI shows as an error but a thread keeps apart. */
export type UICallOutcome = 'failed' | 'interrupted' | 'retry' | 'validation_error' | 'denied'

/** Metadata with this carrier, added to the metadata of other systems that the part already had. */
export function carry(carrier: PartCarrier, part?: object): UIProviderMetadata {
  // Parts come from JSON, so what they hold is JSON.
  const own = { [CARRIER]: carrier as unknown as UIJsonObject }
  const others = part && (part as { provider_metadata?: UIProviderMetadata }).provider_metadata
  return others ? { ...others, ...own } : own
}

/** Reads a carrier; anything else found under our key is ignored, since clients control what they send. */
export function carried(metadata: unknown): PartCarrier {
  const own = isObject(metadata) ? metadata[CARRIER] : undefined
  return isObject(own) ? (own as PartCarrier) : {}
}

/** Our share of a message's metadata, with everything left out that does not look like it. */
export function messageCarrier(
  message: { readonly metadata?: unknown } | undefined,
): MessageCarrier {
  const metadata = message?.metadata
  const own = isObject(metadata) ? metadata[CARRIER] : undefined
  if (!isObject(own)) return {}
  const turns = Array.isArray(own['turns']) ? own['turns'].filter(isTurnCarrier) : []
  return isObject(own['thread']) ? { turns, thread: own['thread'] } : { turns }
}

function isTurnCarrier(entry: unknown): entry is TurnCarrier {
  if (!isObject(entry)) return false
  const { turn_id, agent_id, agent_name, index, turn, messages } = entry
  return (
    [turn_id, agent_id, agent_name].every(
      (text) => text === undefined || typeof text === 'string',
    ) &&
    (index === undefined || Number.isInteger(index)) &&
    (turn === undefined || (isObject(turn) && typeof turn['turn_type'] === 'string')) &&
    (messages === undefined || (Array.isArray(messages) && messages.every(isObject)))
  )
}

/** The part again, from a carrier and the value that the UI part shows; undefined when the carrier has none. */
export function restore(carrier: PartCarrier, shown: unknown): unknown {
  const { part, from } = carrier
  if (from === undefined) return part
  return typeof part === 'object' && part !== null ? { ...part, [from]: shown } : shown
}

/** A copy without some keys. */
export function omitKeys<T extends object>(value: T, ...keys: readonly string[]): Partial<T> {
  const copy: Record<string, unknown> = { ...value } as Record<string, unknown>
  for (const key of keys) delete copy[key]
  return copy as Partial<T>
}

/** Names that this package's own data parts use. An event with such a name is not shown; it stays in the metadata. */
const RESERVED = /^tp-/

/** The part that shows an event: a source, provider content, or `data-NAME`. Undefined when it is not shown. */
export function eventPart(
  message: SystemMessage,
  dataId: string | undefined,
): UIMessagePart | undefined {
  const { event_type, event_data } = message
  const fields = isObject(event_data) ? event_data : {}
  switch (event_type) {
    case 'source.url': {
      const { source_id: sourceId, url, title } = fields
      if (typeof sourceId !== 'string' || typeof url !== 'string') break
      return { type: 'source-url', sourceId, url, ...text('title', title), ...metadata(fields) }
    }
    case 'source.document': {
      const { source_id: sourceId, media_type: mediaType, title, filename } = fields
      if (typeof sourceId !== 'string' || typeof mediaType !== 'string') break
      if (typeof title !== 'string') break
      const optional = { ...text('filename', filename), ...metadata(fields) }
      return { type: 'source-document', sourceId, mediaType, title, ...optional }
    }
    case 'content.custom': {
      const { kind } = fields
      // The client requires the form `provider.type`.
      if (typeof kind !== 'string' || !kind.includes('.')) break
      return { type: 'custom', kind: kind as `${string}.${string}`, ...metadata(fields) }
    }
    default:
      if (RESERVED.test(event_type)) return undefined
  }
  const { event_id } = message as { event_id?: unknown }
  const id = dataId ?? (typeof event_id === 'string' ? event_id : undefined)
  const type = `data-${event_type}` as const
  const data = event_data ?? null
  return id === undefined ? { type, data } : { type, id, data }
}

type Fields = Readonly<Record<string, unknown>>

function text<K extends string>(key: K, value: unknown): { [key in K]?: string } {
  return (typeof value === 'string' ? { [key]: value } : {}) as { [key in K]?: string }
}

function metadata({ provider_metadata }: Fields): { providerMetadata?: UIProviderMetadata } {
  return isObject(provider_metadata)
    ? { providerMetadata: provider_metadata as UIProviderMetadata }
    : {}
}
