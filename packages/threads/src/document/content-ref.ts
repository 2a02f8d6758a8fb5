import { sha256Hex } from '@skein/base'
import { ThreadError } from '../issue.ts'
import { keepJsonText, stringifyJson } from '../json/json-stringify.ts'
import { parseJson } from '../json/json-parse.ts'
import type { SystemMessage, Thread, ThreadMessage, Turn } from './thread.ts'
import type { ContentRef, MessagePart, ToolReturnPart } from './part.ts'

/** A store that keeps large contents, each under an address. */
export interface ContentStore {
  put(uri: string, bytes: Uint8Array): void | Promise<void>
  get(uri: string): Uint8Array | undefined | Promise<Uint8Array | undefined>
}

/** Settings of `offloadContent`. */
export interface OffloadOptions {
  readonly store: ContentStore
  /** Contents of at least this many bytes are moved to the store. Default 100,000. */
  readonly minBytes?: number
  /** The most characters of a text that are kept as a preview. Default 200. */
  readonly previewChars?: number
}

const MEDIA_TYPE = 'application/json'
const encoder = new TextEncoder()

/**
 * Moves large tool returns into a store and replaces each with a reference that contains its hash. The
 * address is that hash, so equal contents are stored once.
 */
export async function offloadContent(thread: Thread, options: OffloadOptions): Promise<Thread> {
  const { store, minBytes = 100_000, previewChars = 200 } = options
  return mapReturns(thread, async (part) => {
    if (part.content_ref) return part
    const bytes = encoder.encode(stringifyJson(part.content))
    if (bytes.length < minBytes) return part
    const hash = sha256Hex(bytes)
    const uri = `sha256:${hash}`
    await store.put(uri, bytes)
    const content_ref = { uri, size_bytes: bytes.length, hash, media_type: MEDIA_TYPE }
    const preview = typeof part.content === 'string' ? part.content.slice(0, previewChars) : null
    return keepJsonText(part, { ...part, content: preview, content_ref })
  })
}

/**
 * Loads every moved content back into the thread. Throws when the store does not have a content, or returns
 * other bytes than were moved.
 */
export async function restoreContent(thread: Thread, store: ContentStore): Promise<Thread> {
  return mapReturns(thread, async (part) => {
    const { content_ref: reference, ...rest } = part
    if (!reference) return part
    const content = await readContent(reference, store)
    return keepJsonText(part, { ...rest, content })
  })
}

/** Loads the content of a reference, checks its hash and returns the parsed value. */
export async function readContent(reference: ContentRef, store: ContentStore): Promise<unknown> {
  const bytes = await store.get(reference.uri)
  if (!bytes) {
    throw new ThreadError(`The content ${reference.uri} is not in the store.`, {
      code: 'CONTENT_MISSING',
      hint: 'The thread itself is whole; open the store that it was moved to.',
    })
  }
  if (sha256Hex(bytes) !== reference.hash) {
    throw new ThreadError(
      `The content ${reference.uri} is not what was stored: its hash differs.`,
      {
        code: 'CONTENT_CHANGED',
        hint: 'Restore the store from a copy.',
      },
    )
  }
  return parseJson(new TextDecoder().decode(bytes)).value
}

type Change = (part: ToolReturnPart) => Promise<ToolReturnPart>

/**
 * Applies `change` to every tool return. Turns and messages in which nothing changed stay the same objects.
 */
async function mapReturns(thread: Thread, change: Change): Promise<Thread> {
  const turns = await mapShared(thread.turns, async (turn): Promise<Turn> => {
    if (turn.turn_type === 'user') return mapParts(turn, change)
    const messages = await mapShared(
      turn.messages,
      async (message: ThreadMessage | SystemMessage) =>
        message.message_type === 'system' ? message : mapParts(message, change),
    )
    return messages === turn.messages ? turn : keepJsonText(turn, { ...turn, messages })
  })
  return turns === thread.turns ? thread : keepJsonText(thread, { ...thread, turns })
}

async function mapParts<T extends { readonly parts: readonly MessagePart[] }>(
  holder: T,
  change: Change,
): Promise<T> {
  const parts = await mapShared(holder.parts, async (part) =>
    part.part_kind === 'tool-return' ? change(part) : part,
  )
  return parts === holder.parts ? holder : keepJsonText(holder, { ...holder, parts })
}

/** Maps a list; returns the list itself when no item changed. */
async function mapShared<T>(
  list: readonly T[],
  map: (item: T) => Promise<T>,
): Promise<readonly T[]> {
  const mapped: T[] = []
  for (const item of list) mapped.push(await map(item))
  return mapped.every((item, index) => item === list[index]) ? list : mapped
}
