import { ErrorCode, UPPError } from '../error.ts'
import { decodeLooseBase64 } from '../loose-base64.ts'
import { isMismatch, mediaTypeOf, mediaTypeOfName } from './media-type.ts'

/** Options of the helpers that read files. */
export interface ReadOptions {
  /** Default: told by the bytes, then by the name. */
  readonly mimeType?: string
  /** Largest accepted file. Default 50 MiB. */
  readonly maxBytes?: number
}

/** The error of a helper that was given something else than it takes. */
export function invalidMedia(message: string, hint: string, cause?: unknown): UPPError {
  return new UPPError(message, {
    code: ErrorCode.InvalidRequest,
    provider: 'skein',
    modality: 'llm',
    hint,
    cause,
  })
}

/** The bytes of a caller's base64, in whatever way it is written. */
export function base64Bytes(base64: string): Uint8Array<ArrayBuffer> {
  try {
    return decodeLooseBase64(base64)
  } catch (cause) {
    throw invalidMedia('The data is not base64.', 'Pass bytes as they are with fromBytes.', cause)
  }
}

/**
 * The type of some bytes: as declared if they do not say otherwise, else what they or their name
 * tell. `family` is what it must be, e.g. `image`.
 */
export function checkedType(
  bytes: Uint8Array,
  family: 'image' | 'audio' | 'video',
  { mimeType, name = '' }: { mimeType?: string | undefined; name?: string },
): string {
  if (!ArrayBuffer.isView(bytes))
    throw invalidMedia(`The data of the ${family} is ${typeof bytes}.`, 'Pass a Uint8Array.')
  if (mimeType === undefined) {
    const told = mediaTypeOf(bytes) ?? mediaTypeOfName(name)
    if (told === undefined)
      throw invalidMedia(
        `The type of the ${family} cannot be told from its data.`,
        'Pass its MIME type.',
      )
    return belongs(told, family) ? told : wrongFamily(told, family)
  }
  if (!belongs(mimeType, family)) return wrongFamily(mimeType, family)
  if (isMismatch(bytes, mimeType))
    throw invalidMedia(
      `The data is ${mediaTypeOf(bytes)}, but it was declared to be ${mimeType}.`,
      'Leave the MIME type out to have it read from the data.',
    )
  return mimeType
}

function belongs(type: string, family: string): boolean {
  // The MP4, Ogg and WebM containers look the same with and without a picture.
  return (
    type.startsWith(`${family}/`) || (family === 'audio' && /^video\/(mp4|ogg|webm)/.test(type))
  )
}

function wrongFamily(type: string, family: string): never {
  throw invalidMedia(`${JSON.stringify(type)} is not an ${family} type.`, `Expected ${family}/….`)
}
