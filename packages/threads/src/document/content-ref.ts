import { sha256Hex } from '@skein/base'
import { ThreadError } from '../issue.ts'
import { keepJsonText, stringifyJson } from '../json/json-stringify.ts'
import { parseJson } from '../json/json-parse.ts'
import type { SystemMessage, Thread, ThreadMessage, Turn } from './thread.ts'
import type {
  BinaryContent,
  BuiltinToolReturnPart,
  ContentRef,
  MessagePart,
  ToolReturnPart,
} from './part.ts'

/** A store that keeps large contents, each under an address. */
export interface ContentStore {
  put(uri: string, bytes: Uint8Array): void | Promise<void>
  get(uri: string): Uint8Array | undefined | Promise<Uint8Array | undefined>
}

/** Settings of `offloadContent`. */
interface OffloadOptions {
  readonly store: ContentStore
  /** Contents of at least this many bytes are moved to the store. Default 100,000. */
  readonly minBytes?: number
  /** The most characters of a text that are kept as a preview. Default 200. */
  readonly previewChars?: number
}

const MEDIA_TYPE = 'application/json'
const encoder = new TextEncoder()

/**
 * Moves large contents into a store and replaces each with a reference that contains its hash: returns of
 * tools, also of those that the provider ran, and the bytes of files, attachments and speech. The address is
 * that hash, so equal contents are stored once.
 */
export async function offloadContent(thread: Thread, options: OffloadOptions): Promise<Thread> {
  const { store, minBytes = 100_000, previewChars = 200 } = options
  const move = async (content: unknown, media_type: string): Promise<ContentRef | undefined> => {
    const bytes = encoder.encode(stringifyJson(content))
    if (bytes.length < minBytes) return undefined
    const hash = sha256Hex(bytes)
    const uri = `sha256:${hash}`
    await store.put(uri, bytes)
    return { uri, size_bytes: bytes.length, hash, media_type }
  }
  return mapParts(thread, {
    returned: async (part) => {
      if (part.content_ref) return part
      const content_ref = await move(part.content, MEDIA_TYPE)
      if (!content_ref) return part
      const preview = typeof part.content === 'string' ? part.content.slice(0, previewChars) : null
      return keepJsonText(part, { ...part, content: preview, content_ref })
    },
    binary: async (binary) => {
      if (binary.content_ref) return binary
      // The base64 text is stored, not the bytes that it encodes: it has to come back byte for byte.
      const content_ref = await move(binary.data, binary.media_type)
      return content_ref ? keepJsonText(binary, { ...binary, data: '', content_ref }) : binary
    },
  })
}

/**
 * Loads every moved content back into the thread. Throws when the store does not have a content, or returns
 * other bytes than were moved.
 */
export async function restoreContent(thread: Thread, store: ContentStore): Promise<Thread> {
  return mapParts(thread, {
    returned: async (part) => {
      const { content_ref: reference, ...rest } = part
      if (!reference) return part
      const content = await readContent(reference, store)
      return keepJsonText(part, { ...rest, content } as typeof part)
    },
    binary: async (binary) => {
      const { content_ref: reference, ...rest } = binary
      if (!reference) return binary
      const data = await readContent(reference, store)
      return keepJsonText(binary, { ...rest, data: String(data) })
    },
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

type Returned = ToolReturnPart | BuiltinToolReturnPart
type Binary = BinaryContent & { readonly content_ref?: ContentRef }

interface Change {
  readonly returned: <Part extends Returned>(part: Part) => Promise<Part>
  readonly binary: (content: Binary) => Promise<Binary>
}

/**
 * Applies `change.returned` to every part with a tool's result, and `change.binary` to every binary content (image,
 * audio, file) of the other parts. Turns, messages and parts in which nothing changed stay the same objects.
 */
async function mapParts(thread: Thread, change: Change): Promise<Thread> {
  const inHolder = async <T extends { readonly parts: readonly MessagePart[] }>(
    holder: T,
  ): Promise<T> => {
    if (!Array.isArray(holder.parts)) return holder
    const parts = await mapShared(holder.parts, (part) => changePart(part, change))
    return parts === holder.parts ? holder : keepJsonText(holder, { ...holder, parts })
  }
  const turns = await mapShared(thread.turns, async (turn): Promise<Turn> => {
    if (turn.turn_type === 'user') return inHolder(turn)
    if (!Array.isArray(turn.messages)) return turn
    const messages = await mapShared(
      turn.messages,
      async (message: ThreadMessage | SystemMessage) =>
        message.message_type === 'system' ? message : inHolder(message),
    )
    return messages === turn.messages ? turn : keepJsonText(turn, { ...turn, messages })
  })
  return turns === thread.turns ? thread : keepJsonText(thread, { ...thread, turns })
}

async function changePart(part: MessagePart, change: Change): Promise<MessagePart> {
  switch (part.part_kind) {
    case 'tool-return':
    case 'builtin-tool-return':
      return change.returned(part)
    case 'file': {
      const content = await changeContent(part.content, change)
      return content === part.content ? part : keepJsonText(part, { ...part, content })
    }
    case 'user-prompt': {
      if (typeof part.content === 'string') return part
      const content = await mapShared(part.content, (item) => changeContent(item, change))
      return content === part.content ? part : keepJsonText(part, { ...part, content })
    }
    case 'speech': {
      const { audio } = part
      if (!audio) return part
      const newAudio = await changeContent(audio, change)
      return newAudio === audio ? part : keepJsonText(part, { ...part, audio: newAudio })
    }
    default:
      return part
  }
}

async function changeContent<Content>(content: Content, { binary }: Change): Promise<Content> {
  if (typeof content !== 'object' || content === null) return content
  const { kind, data } = content as Partial<Binary>
  if (kind !== 'binary' || typeof data !== 'string') return content
  return binary(content as Content & Binary) as Promise<Content & Binary>
}

/** Maps a list; returns the list itself when no item changed. */
async function mapShared<T>(
  list: readonly T[],
  map: (item: T) => Promise<T>,
): Promise<readonly T[]> {
  const results: T[] = []
  for (const item of list) results.push(await map(item))
  return results.every((item, index) => item === list[index]) ? list : keepJsonText(list, results)
}
