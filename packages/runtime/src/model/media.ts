import {
  Audio,
  Document,
  Image,
  type LLMCapabilities,
  type Message,
  ToolResultMessage,
  type TextBlock,
  type UserContent,
  UserMessage,
  Video,
} from '@skein/ai'
import { encodeBase64 } from '@skein/base'
import type { DrainContext } from '../context/drain-context.ts'
import type { ResolvedModel, ResolvedSide } from '../definitions/resolved.ts'
import { fileMediaType } from '../thread/media-type.ts'
import { fileBlock, fileIn, type FileReference, shownAs } from './file-blocks.ts'
import { mediaItems, mediaKind } from './media-in-messages.ts'
import type { MediaKind } from './media-in-messages.ts'

/** What is sent in place of a file or medium: its content, or a text that says why the content is left out. */
type Fate = { readonly media: UserContent } | { readonly note: string }

/**
 * Adds the contents of files to the messages of a request, the newest files first, as far as the model accepts
 * them and the limits allow. For every other file the request has its name, its type, and why the content is
 * left out. `logged` is the request as the log stores it: with references to the files, without their contents.
 */
export async function withMedia(
  context: DrainContext,
  request: {
    readonly side: ResolvedSide
    readonly model: ResolvedModel
    readonly messages: readonly Message[]
  },
): Promise<{ readonly logged: readonly Message[]; readonly sent: readonly Message[] }> {
  const { messages } = request
  const rules = rulesOf(context, request)
  const fates = new Map<unknown, Fate>()
  for (let place = messages.length - 1; place >= 0; place--) {
    const isOld = place < messages.length - rules.recent
    for (const item of mediaItems(messages[place]!).toReversed()) {
      const file = fileIn(item)
      const fate = file ? await fateOf(context, rules, file, isOld) : inlineFate(rules, item)
      if (fate) fates.set(item, fate)
    }
  }
  const withNotesOnly = messages.map((message) => withNotes(message, fates))
  const complete = messages.map(
    (message, place) => withContents(message, fates) ?? withNotesOnly[place]!,
  )
  // The encoders of vendor formats cache a request for as long as its last message object exists, which may be long. A
  // copy of that message, used only in this request, lets them drop the contents of files together with the request.
  const last = complete.at(-1)
  const hasContents = [...fates.values()].some((fate) => 'media' in fate)
  if (last && hasContents && last === withNotesOnly.at(-1))
    complete[complete.length - 1] = copyOf(last)
  return { logged: withNotesOnly, sent: complete }
}

/** Which files the model may be shown, and how many files and bytes the request has room for. */
interface Rules {
  readonly modelId: string
  readonly recent: number
  readonly takes: (kind: MediaKind, mediaType: string) => boolean
  left: { files: number; bytes: number }
}

const INPUTS = {
  image: 'imageInput',
  document: 'documentInput',
  audio: 'audioInput',
  video: 'videoInput',
} as const satisfies Record<MediaKind, keyof LLMCapabilities>

function rulesOf(
  { environment }: DrainContext,
  {
    side,
    model: { model, inputs },
  }: { readonly side: ResolvedSide; readonly model: ResolvedModel },
): Rules {
  const { capabilities, wire } = model.provider.handlers.llm?.bind(model) ?? {}
  const { maxMediaFiles: files, maxMediaBytes: bytes } = environment.limits
  return {
    modelId: model.modelId,
    recent: side.prompt.definition.recentImageThreshold ?? 10,
    takes(kind, mediaType) {
      const input = INPUTS[kind]
      if (capabilities?.[input] !== true || inputs[input] === false) return false
      // Google accepts every common audio format, the other vendors only WAV and MP3.
      const isAny = kind !== 'audio' || wire === undefined || wire.startsWith('google-')
      return isAny || /^audio\/(x-wav|wave?|vnd\.wave|mpeg|mp3)\b/.test(mediaType)
    },
    left: { files, bytes },
  }
}

const WORDS: Readonly<Record<MediaKind, string>> = {
  image: 'images',
  document: 'documents',
  audio: 'audio of this type',
  video: 'video',
}

/**
 * Decides whether a file's content is sent (newest files first); undefined for types that are never sent.
 */
async function fateOf(
  { environment, state }: DrainContext,
  rules: Rules,
  file: FileReference,
  isOld: boolean,
): Promise<Fate | undefined> {
  const { path, mediaType, sizeBytes, hash } = file
  const { maxImageBytes, maxMediaBytes, maxMediaFiles } = environment.limits
  const kind = shownAs(mediaType)
  if (!kind) return undefined
  const { left } = rules
  if (!state.files.has(path) || !state.fileHashes.has(hash)) return { note: 'it was removed' }
  if (!rules.takes(kind, mediaType)) return { note: `${rules.modelId} takes no ${WORDS[kind]}` }
  if (isOld) return { note: `it is older than the last ${rules.recent} messages` }
  if (kind === 'image' && sizeBytes > maxImageBytes)
    return { note: `an image may have ${maxImageBytes} bytes (the limit maxImageBytes)` }
  if (sizeBytes > maxMediaBytes)
    return { note: `the files of a request may have ${maxMediaBytes} bytes (maxMediaBytes)` }
  if (left.files < 1 || sizeBytes > left.bytes)
    return {
      note: `newer files fill the request (limits: ${maxMediaFiles} files, ${maxMediaBytes} bytes)`,
    }
  const bytes = await environment.store.blob(hash)
  const media = bytes && mediaOf(kind, bytes, file)
  if (!media) return { note: `its content is not of the type ${mediaType}` }
  left.files--
  left.bytes -= sizeBytes
  return { media }
}

/** Makes the block with the content of a file; undefined if the content does not have the type that the file claims. */
function mediaOf(kind: MediaKind, bytes: Uint8Array, file: FileReference): UserContent | undefined {
  const { path, mediaType } = file
  try {
    switch (kind) {
      case 'image': {
        // The name may suggest another format than the content has; vendors check the content.
        const image = Image.fromBytes(bytes)
        return shownAs(image.mimeType) === 'image' ? image : undefined
      }
      case 'document': {
        if (fileMediaType('', bytes) !== mediaType) return undefined
        const title = path.slice(path.lastIndexOf('/') + 1)
        return Document.fromBase64(encodeBase64(bytes), mediaType, title)
      }
      case 'audio':
        return Audio.fromBytes(bytes, mediaType)
      case 'video':
        return Video.fromBytes(bytes, mediaType)
    }
  } catch {
    return undefined
  }
}

/** Decides about media inside the message itself: they are left out if the model does not accept them. */
function inlineFate({ takes, modelId }: Rules, item: unknown): Fate | undefined {
  const kind = mediaKind(item)
  if (!kind) return undefined
  const { mimeType, source } = item as { mimeType: string; source?: { type?: unknown } }
  // A document whose content is plain text can be read by every model.
  if (source?.type === 'text' || takes(kind, mimeType)) return undefined
  return { note: `${modelId} takes no ${WORDS[kind]}` }
}

/** Caches messages with notes on files left out: the same notes give the same object, which vendor formats cache. */
const noted = new WeakMap<Message, Map<string, Message>>()

/** Returns the message with a note at every file whose content is not sent. */
function withNotes(message: Message, fates: ReadonlyMap<unknown, Fate>): Message {
  const notes = mediaItems(message).map((item) => {
    const fate = fates.get(item)
    return fate && 'note' in fate ? fate.note : ''
  })
  const isResult = message.type === 'tool_result' && mediaItems(message).some(fileIn)
  if (!isResult && notes.every((note) => note === '')) return message
  const copies = noted.get(message) ?? new Map<string, Message>()
  noted.set(message, copies)
  const key = notes.join('\n')
  const copy =
    copies.get(key) ??
    rewritten(message, (item) => {
      const fate = fates.get(item)
      return blocksOf(item, fate && 'note' in fate ? fate : undefined)
    })
  copies.set(key, copy)
  return copy
}

/** Returns the message with the contents of its files; undefined if no file of it is sent. */
function withContents(message: Message, fates: ReadonlyMap<unknown, Fate>): Message | undefined {
  const items = mediaItems(message)
  const isShown = items.some((item) => 'media' in (fates.get(item) ?? {}))
  return isShown ? rewritten(message, (item) => blocksOf(item, fates.get(item))) : undefined
}

/** Returns the blocks that replace a file or medium in a request. */
function blocksOf(item: unknown, fate: Fate | undefined): readonly UserContent[] {
  const note = fate && 'note' in fate ? fate.note : undefined
  const file = fileIn(item)
  if (file) {
    const { text, metadata } = item as TextBlock
    if (metadata?.['skein']?.['isListed']) return fate && 'media' in fate ? [fate.media] : []
    const before = /^(Attached files:)?\n/.exec(text ?? '')?.[0]
    const reference = fileBlock(file, { before, note })
    return fate && 'media' in fate ? [reference, fate.media] : [reference]
  }
  const kind = mediaKind(item)
  if (note !== undefined && kind) {
    const { mimeType } = item as { readonly mimeType: string }
    return [{ type: 'text', text: `[${mimeType} was here: not shown, because ${note}.]` }]
  }
  if (kind || (item as { type?: unknown } | null)?.type === 'text') return [item as UserContent]
  return [{ type: 'text', text: typeof item === 'string' ? item : JSON.stringify(item) }]
}

/** Makes a copy of the message with other blocks. Tool results that refer to no file stay as they are. */
function rewritten(message: Message, blocks: (item: unknown) => readonly UserContent[]): Message {
  const { id, timestamp, metadata } = message
  const options = { id, timestamp, metadata }
  if (message.type === 'user') return new UserMessage(message.content.flatMap(blocks), options)
  if (message.type !== 'tool_result') return message
  const results = message.results.map((one) => {
    const items: readonly unknown[] = [one.result].flat()
    const hasMedia = items.some((item) => fileIn(item) ?? mediaKind(item))
    return hasMedia ? { ...one, result: items.flatMap(blocks) } : one
  })
  return new ToolResultMessage(results, options)
}

function copyOf(message: Message): Message {
  const { id, timestamp, metadata } = message
  if (message.type === 'user') return new UserMessage(message.content, { id, timestamp, metadata })
  if (message.type !== 'tool_result') return message
  return new ToolResultMessage(message.results, { id, timestamp, metadata })
}
