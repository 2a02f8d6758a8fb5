import { canonicalJson, decodeBase64, isObject, sha256Hex } from '@skein/base'

const MEDIA: ReadonlySet<unknown> = new Set(['image', 'document', 'audio', 'video', 'binary'])

/** A medium as requests are compared by it: its kind and the hash of its contents. */
export interface MediumKey {
  readonly media: string
  readonly hash: string
}

/**
 * Returns the items of a list of contents with keys in place of media. The log names the files of a request in texts and
 * leaves their contents out; what is sent has both. Either way each file has one key.
 */
export function withMediaKeys(
  items: readonly unknown[],
  keyOfItem: (item: unknown) => unknown,
): readonly unknown[] {
  let named: string | undefined // the hash of the file that the item before has named
  return items.flatMap((item) => {
    const before = named
    named = undefined
    const file = fileOf(item)
    if (file) {
      if (file.isListed) return file.isShown ? [file.key] : []
      named = file.key.hash
      return file.isText ? [keyOfItem(item), file.key] : [file.key]
    }
    const key = mediumKey(item)
    if (!key) return [keyOfItem(item)]
    return key.hash === before ? [] : [key]
  })
}

/** The key of a medium, or of the file that the log names in its place; undefined for everything else. */
export function mediumKey(value: unknown): MediumKey | undefined {
  if (!isObject(value)) return undefined
  const { type, mimeType, source, $file } = value
  if (isObject($file)) return fileKey($file)
  if (!MEDIA.has(type)) return undefined
  return { media: kindOf(String(mimeType)), hash: hashOf(source ?? value['data']) }
}

/** The file that an item names. */
interface NamedFile {
  readonly key: MediumKey
  /** Whether the item is a text, which a model is shown too. */
  readonly isText: boolean
  /** Whether the text of the message names the file already: a model is shown only its contents. */
  readonly isListed: boolean
  /** Whether models may be shown the contents. */
  readonly isShown: boolean
}

function fileOf(item: unknown): NamedFile | undefined {
  if (!isObject(item)) return undefined
  const { $file, metadata, text } = item
  if (isObject($file)) return { key: fileKey($file), isText: false, isListed: false, isShown: true }
  const own = isObject(metadata) ? metadata['skein'] : undefined
  if (!isObject(own) || !isObject(own['file'])) return undefined
  const { file, isListed } = own
  const isShown =
    /^(?:image\/(?:png|jpe?g|gif|webp)|application\/pdf|audio\/.*|video\/.*)$/i.test(
      String(file['mediaType']).split(';')[0]!.trim(),
    ) && !String(text).includes(': not shown, because ')
  return { key: fileKey(file), isText: true, isListed: isListed === true, isShown }
}

function fileKey({ mediaType, hash }: Readonly<Record<string, unknown>>): MediumKey {
  return { media: kindOf(String(mediaType)), hash: String(hash) }
}

/** `image` of `image/png`: a file may claim another type of image than its contents have. */
function kindOf(mediaType: string): string {
  return mediaType.split('/')[0]!
}

/** The hash of the bytes, which a file has too; of an address or another source, the hash of its JSON. */
function hashOf(source: unknown): string {
  const data = isObject(source) ? source['data'] : source
  const bytes = isObject(data) ? data['$bytes'] : data
  if (typeof bytes === 'string') {
    try {
      return sha256Hex(decodeBase64(bytes))
    } catch {
      // A plain text.
    }
  }
  return sha256Hex(canonicalJson(JSON.parse(JSON.stringify(source ?? null))))
}
