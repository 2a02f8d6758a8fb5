import { isObject } from '@skein/base'
import type { UIProviderMetadata, UIJsonObject, UIMessagePart } from './types.ts'
import type { SystemMessage } from '../../document/thread.ts'

/**
 * Our key in `providerMetadata` and `metadata`, the only fields that the client keeps unchanged. Thread data
 * stored under it is called a carrier.
 */
export const CARRIER = 'threadprotocol'

/**
 * The thread data in the metadata of one UI part. `agent_id`, `outcome` and `errors` are always written; the
 * other fields only with `carry: 'all'`, because they contain data that a server may not want to show
 * (signatures, provider ids).
 */
export interface PartCarrier {
  /** The agent that wrote the part. */
  readonly agent_id?: string
  /** How a call ended; the UI has only one state for several of these outcomes. */
  readonly outcome?: UICallOutcome
  /** The problems that the model is asked to correct in a retry, when they are a list. */
  readonly errors?: unknown
  /**
   * Position in the thread: turn.message.part, or turn.part in a user turn; a content item has one more
   * number.
   */
  readonly at?: string
  /** The part or content item, without the field that the UI part itself contains. */
  readonly part?: unknown
  /** The field that `part` leaves out because the UI part contains it; absent when `part` is complete. */
  readonly from?: ShownField
  /** On the first item of a content list: the prompt part that contains the list. */
  readonly prompt?: unknown
  /** The return of a denied call; the UI part of a denied call has no field for a result. */
  readonly result?: PartCarrier
}

/** The field of a part that is left out of the metadata, because the UI part contains its value. */
export type ShownField = 'content' | 'args' | 'transcript' | 'url' | 'data'

/** The data about one turn in a message's metadata. */
export interface TurnCarrier {
  readonly turn_id?: string
  readonly agent_id?: string
  readonly agent_name?: string
  /**
   * The position of the turn in the thread. `index`, `turn` and `messages` are written only if `carry` is
   * `all`.
   */
  readonly index?: number
  /** The turn without the content that its UI message contains. */
  readonly turn?: Readonly<Record<string, unknown>>
  /**
   * The turn's messages, without the content that the UI message contains. If a data part contains the data
   * of an event, `shown` is the id of that part.
   */
  readonly messages?: readonly Readonly<Record<string, unknown>>[]
}

/** The data under our key in a message's metadata. */
export interface MessageCarrier {
  readonly turns?: readonly TurnCarrier[]
  /** The thread's own fields; only on the first message. */
  readonly thread?: Readonly<Record<string, unknown>>
}

/**
 * The outcomes of a call other than success. A thread distinguishes them; a UI shows several of them in the
 * same state.
 */
export type UICallOutcome = 'failed' | 'interrupted' | 'retry' | 'validation_error' | 'denied'

/** Returns metadata with this thread data, added to the metadata of other systems that the part already had. */
export function carry(carrier: PartCarrier, part?: object): UIProviderMetadata {
  // The cast is safe: the thread data was made from parts of a JSON document.
  const own = { [CARRIER]: carrier as unknown as UIJsonObject }
  const others = part && (part as { provider_metadata?: UIProviderMetadata }).provider_metadata
  return others ? { ...others, ...own } : own
}

/** Reads the thread data under our key. Data of another form is ignored, because clients may send anything. */
export function carried(metadata: unknown): PartCarrier {
  const own = isObject(metadata) ? metadata[CARRIER] : undefined
  return isObject(own) ? (own as PartCarrier) : {}
}

/** Reads the data under our key in a message's metadata. Data of an unexpected shape is left out. */
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

/**
 * Restores a part from the thread data in its metadata and the value that the UI part contains; undefined
 * when the thread data has no part.
 */
export function restore(carrier: PartCarrier, shown: unknown): unknown {
  const { part, from } = carrier
  if (from === undefined) return part
  return typeof part === 'object' && part !== null ? { ...part, [from]: shown } : shown
}

/** Returns a copy without the given keys. */
export function omitKeys<T extends object>(value: T, ...keys: readonly string[]): Partial<T> {
  const copy: Record<string, unknown> = { ...value } as Record<string, unknown>
  for (const key of keys) delete copy[key]
  return copy as Partial<T>
}

/**
 * Names that this package uses for its own data parts. An event with such a name is not shown; if `carry` is
 * `all`, the metadata still contains it.
 */
const RESERVED = /^tp-/

/**
 * Returns the UI part for an event: a source, provider content, or `data-NAME`. Undefined when the event is
 * not shown.
 */
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
