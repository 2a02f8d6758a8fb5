import { type SettledOutcome, type UserContent } from '@skein/ai'
import { contentOf } from '@skein/ai/engine'
import { decodeBase64, type JsonObject, messageOf } from '@skein/base'
import type { DrainContext } from '../context/drain-context.ts'
import type { FileStat } from '../contract/thread-state.ts'
import type { ResolvedSide } from '../definitions/resolved.ts'
import { type ChangesWrite, writeOf } from '../thread/changes.ts'
import { cutLargeText } from '../thread/large-text.ts'
import { findFiles } from '../thread/copied-files.ts'
import { fileExtension } from '../thread/media-type.ts'

/** What the result of a call belongs to. */
interface ResultPlace {
  readonly drain: DrainContext
  readonly side: ResolvedSide
  readonly toolCallId: string
}

/**
 * The files of one call's result. The log contains no bytes and models get no endless texts: media and large texts become
 * files of the thread. The files are stored together with the outcome: `write` is what the call commits so far.
 */
export class ResultFiles {
  readonly #place: ResultPlace
  write: ChangesWrite | undefined

  constructor(place: ResultPlace, write: ChangesWrite | undefined) {
    this.#place = place
    this.write = write
  }

  /**
   * Returns the outcome. If it is larger than `maxToolResultBytes`, returns its beginning, its end and the name of a
   * file of the thread that has the whole result. Media are not cut: the model needs them whole.
   */
  async fit(own: SettledOutcome): Promise<SettledOutcome> {
    const { drain } = this.#place
    if (own.type === 'denied' || own.type === 'unknown') return own
    const outcome = own.type === 'done' ? await this.#storeMedia(own.result) : own
    const value = outcome.type === 'done' ? outcome.result : outcome.message
    const text = typeof value === 'string' ? value : JSON.stringify(value)
    const { limits } = drain.environment
    if (text.length * 3 <= limits.maxToolResultBytes) return outcome
    const excerpt = cutLargeText(drain.redactor()?.text(text) ?? text, limits)
    if (!excerpt || hasMedia(value)) return outcome
    const { path } = await this.#writeFile(excerpt.kept, 'text/plain')
    const shortText = excerpt.shown(path)
    if (outcome.type === 'done') return { type: 'done', result: shortText }
    return { type: 'error', message: shortText }
  }

  /**
   * Stores media in a tool's result as files of the thread. In the result, media and marked file paths become
   * references. Models that can read the type of a file are shown the file.
   */
  async #storeMedia(result: unknown): Promise<Extract<SettledOutcome, { type: 'done' | 'error' }>> {
    const { drain } = this.#place
    const items: readonly unknown[] = [result].flat()
    const contents = contentOf(result).map(bytesOf)
    if (!items.some((item) => markedPath(item) !== undefined) && !contents.some(Boolean))
      return { type: 'done', result }
    const { maxFileBytes } = drain.environment.limits
    try {
      const parts: unknown[] = []
      for (const [index, item] of items.entries()) {
        const path = markedPath(item)
        const content = contents[index]
        if (path !== undefined)
          parts.push(fileReference(findFiles(drain, [path], this.write?.events)[0]!))
        else if (!content) parts.push(item)
        else if (content.bytes.length <= maxFileBytes)
          parts.push(fileReference(await this.#writeFile(content.bytes, content.mediaType)))
        else {
          const size = `${content.bytes.length} bytes, and a file may have ${maxFileBytes}`
          const text = `[A file of the type ${content.mediaType} is left out: it has ${size}.]`
          parts.push({ type: 'text', text })
        }
      }
      return { type: 'done', result: Array.isArray(result) ? parts : parts[0] }
    } catch (error) {
      // A hook named a file that does not exist.
      return { type: 'error', message: messageOf(error) }
    }
  }

  /** Writes a file of the thread under the name of the call. */
  async #writeFile(bytes: Uint8Array, mediaType: string): Promise<FileStat> {
    const { drain, side, toolCallId } = this.#place
    const own = this.write
    const facade = drain.facade(side, { toolCallId })
    const isTaken = (path: string): boolean =>
      facade.state.statFile(path) !== undefined ||
      own?.events.some((event) => event.type === 'file_written' && event.path === path) === true
    const path = resultPath(toolCallId, fileExtension(mediaType), isTaken)
    const file = await facade.state.writeFile(path, bytes, { mediaType })
    const { events, others, blobs } = await writeOf(drain, facade.takeChanges())
    this.write = {
      ...own,
      events: [...(own?.events ?? []), ...events],
      others: [...(own?.others ?? []), ...others],
      blobs: [...(own?.blobs ?? []), ...blobs],
    }
    return file
  }
}

/** Returns the paths of the files of the thread that a tool's result names (see `markedPath`). */
export function markedPaths(result: unknown): readonly string[] {
  return [result].flat().flatMap((item) => markedPath(item) ?? [])
}

/** Returns the path in `{ $file: '/chart.png' }`, by which a tool returns a file of the thread. */
function markedPath(item: unknown): string | undefined {
  const { $file } = (item ?? {}) as { readonly $file?: unknown }
  return typeof $file === 'string' && Object.keys(item as object).length === 1 ? $file : undefined
}

/** Returns the reference to a file that the log stores in a result; `fileIn` reads it. */
export function fileReference({ path, mediaType, sizeBytes, hash }: FileStat): JsonObject {
  return { $file: { path, mediaType, sizeBytes, hash } }
}

/** Returns a free path for the result of a call. The model chose the call's id, which may be no valid file name. */
function resultPath(
  toolCallId: string,
  extension: string,
  isTaken: (path: string) => boolean,
): string {
  const name = toolCallId.replace(/[^\w-]/g, '_').slice(0, 80) || 'call'
  for (let count = 1; ; count++) {
    const path = `/results/${name}${count === 1 ? '' : `-${count}`}${extension}`
    if (!isTaken(path)) return path
  }
}

/** Returns the bytes of a media block; undefined for texts, and for media that are only an address. */
function bytesOf(
  block: UserContent,
): { readonly bytes: Uint8Array; readonly mediaType: string } | undefined {
  if (block.type === 'text') return undefined
  const { mimeType: mediaType } = block
  if ('data' in block)
    return block.data instanceof Uint8Array ? { bytes: block.data, mediaType } : undefined
  const { source } = block
  if (source.type === 'bytes') return { bytes: source.data, mediaType }
  if (source.type !== 'base64') return undefined
  try {
    return { bytes: decodeBase64(source.data), mediaType }
  } catch {
    return undefined // it only looks like media
  }
}

function hasMedia(result: unknown): boolean {
  return contentOf(result).some(({ type }) => type !== 'text')
}
