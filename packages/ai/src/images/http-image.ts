import { decodeBase64, type JsonObject, type JsonValue } from '@skein/base'
import { strictBase64 } from '../loose-base64.ts'
import type { ProviderMetadata } from '../content.ts'
import { ErrorCode, UPPError } from '../error.ts'
import type { GeneratedImage, ImageRequest, ImageResult, ImageUsage } from '../image.ts'
import { Image } from '../media/image.ts'
import { mediaTypeOf } from '../media/media-type.ts'
import type { VendorCall } from '../transport/attempt.ts'
import type { VendorEndpoint } from '../transport/endpoint.ts'
import { asUPPError, JsonReader } from '../transport/read-answer.ts'
import { runForOne } from '../transport/vendor-run.ts'
import { objectOf } from '../wires/read-json.ts'
import type { ErrorResponse, VendorError } from '../contract/vendor-error.ts'
import { downloadImage } from './download-image.ts'

/** One image request of a vendor. */
export interface ImageCall {
  readonly endpoint: VendorEndpoint
  readonly request: ImageRequest
  readonly path: string
  readonly body: string | FormData
  readonly decodeError: (response: ErrorResponse) => VendorError
}

/** An image as a vendor gives it: data, or an address that has to be fetched. */
export interface VendorImage {
  readonly base64?: string | undefined
  readonly url?: string | undefined
  /** What the vendor calls it; the bytes themselves are believed first. */
  readonly mimeType?: string | undefined
  readonly metadata?: JsonObject
}

export interface DecodedImages {
  readonly images: readonly VendorImage[]
  readonly usage?: ImageUsage
  readonly metadata: JsonObject
}

export function imageVendorCall(call: ImageCall, accept = 'application/json'): VendorCall {
  const { endpoint, request, path, body, decodeError } = call
  const { config, signal } = request
  return {
    endpoint,
    modality: 'image',
    config,
    signal,
    path,
    body,
    headers: { accept },
    decodeError,
  }
}

/** Sends the request and makes images with bytes of what comes back. */
export async function requestImages(
  call: ImageCall,
  decode: (body: JsonObject) => DecodedImages,
): Promise<ImageResult> {
  const vendorCall = imageVendorCall(call)
  const provider = call.endpoint.name
  const decoded = await runForOne(
    vendorCall,
    (answer) => new JsonReader(answer, vendorCall, (json) => decodeWhole(json, provider, decode)),
  )
  const images = await Promise.all(decoded.images.map((image) => toGenerated(image, call)))
  return {
    images,
    usage: { imagesGenerated: images.length, ...decoded.usage },
    metadata: { [provider]: decoded.metadata },
  }
}

/** Reads a whole answer. One without any image is not an answer. */
export function decodeWhole(
  json: JsonValue,
  provider: string,
  decode: (body: JsonObject) => DecodedImages,
): DecodedImages {
  const body = objectOf(json)
  const decoded = body && decode(body)
  if (decoded && decoded.images.length > 0) return decoded
  throw new UPPError(`The answer of ${provider} holds no image.`, {
    code: ErrorCode.InvalidResponse,
    provider,
    modality: 'image',
  })
}

/** An image with its bytes, so that `toBytes()` works whatever way the vendor answered. */
export async function toGenerated(image: VendorImage, call: ImageCall): Promise<GeneratedImage> {
  const { base64, url, mimeType, metadata } = image
  const said: ProviderMetadata | undefined = metadata && { [call.endpoint.name]: metadata }
  try {
    const made =
      base64 === undefined ? await downloadImage(url, mimeType, call) : fromBase64(base64, mimeType)
    return { image: made, ...(said && { metadata: said }) }
  } catch (error) {
    throw asUPPError(error, { provider: call.endpoint.name, modality: 'image' }) // broken base64
  }
}

/** The vendor may be wrong about the type, not the bytes; and what it made is never refused. */
export function fromBase64(base64: string, mimeType?: string): Image {
  const data = strictBase64(base64)
  // Enough for every signature, and whole groups of base64.
  const sniffed = imageTypeOf(decodeBase64(data.slice(0, 64)))
  const source = { type: 'base64', data } as const
  return Image.fromBlock({ type: 'image', source, mimeType: sniffed ?? mimeType ?? 'image/png' })
}

export function imageTypeOf(bytes: Uint8Array): string | undefined {
  const type = mediaTypeOf(bytes)
  return type?.startsWith('image/') ? type : undefined
}
