import { decodeBase64, type JsonObject, type JsonValue } from '@skein/base'
import { strictBase64 } from '../media/bytes.ts'
import type { ImageBlock, ImageSource, ProviderMetadata } from '../contract/content.ts'
import { ErrorCode, isUPPError, UPPError } from '../contract/error.ts'
import type {
  GeneratedImage,
  ImageRequest,
  ImageResult,
  ImageStreamEvent,
  ImageUsage,
} from '../image.ts'
import { mediaTypeOf } from '../media/media-type.ts'
import { type VendorAnswer, contextOf, type VendorCall } from '../transport/attempt.ts'
import { isPublicAddress, type VendorEndpoint } from '../transport/endpoint.ts'
import { asUPPError, type FrameDecoder, FrameReader, JsonReader } from '../transport/read-answer.ts'
import {
  type AnswerReader,
  type OpenReader,
  runForOne,
  VendorRun,
} from '../transport/vendor-run.ts'
import { objectOf } from '../wires/read-json.ts'
import type { ErrorResponse, VendorError } from '../contract/vendor-error.ts'
import { chooseReader } from '../transport/choose-reader.ts'
import { parseDataUrl } from '../wires/media.ts'

/** One image request to a vendor. */
export interface ImageCall {
  readonly endpoint: VendorEndpoint
  readonly request: ImageRequest
  readonly path: string
  readonly body: string | FormData
  readonly decodeError: (response: ErrorResponse) => VendorError
}

/** An image as the vendor returned it: data, or an address to download it from. */
export interface VendorImage {
  readonly base64?: string | undefined
  readonly url?: string | undefined
  /** The MIME type named by the vendor; a type recognised from the bytes overrides it. */
  readonly mimeType?: string | undefined
  readonly metadata?: JsonObject
}

/** The decoded response of a vendor. */
export interface DecodedImages {
  readonly images: readonly VendorImage[]
  readonly usage?: ImageUsage
  readonly metadata: JsonObject
}

function imageVendorCall(call: ImageCall, accept = 'application/json'): VendorCall {
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

/** Sends the request and returns the images with their bytes. */
export async function requestImages(
  call: ImageCall,
  decode: (body: JsonObject) => DecodedImages,
): Promise<ImageResult<ImageBlock>> {
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

/** Decodes a whole response. Throws if it contains no image. */
function decodeWhole(
  json: JsonValue,
  provider: string,
  decode: (body: JsonObject) => DecodedImages,
): DecodedImages {
  const body = objectOf(json)
  const answer = body && decode(body)
  if (answer && answer.images.length > 0) return answer
  throw new UPPError(`The answer of ${provider} holds no image.`, {
    code: ErrorCode.InvalidResponse,
    provider,
    modality: 'image',
  })
}

/** Decodes an image, or downloads it if the vendor sent only an address, so that the caller gets its bytes. */
async function toGenerated(
  image: VendorImage,
  call: ImageCall,
): Promise<GeneratedImage<ImageBlock>> {
  const { base64, url, mimeType, metadata } = image
  const ownMetadata: ProviderMetadata | undefined = metadata && { [call.endpoint.name]: metadata }
  try {
    const picture =
      base64 === undefined ? await downloadImage(url, mimeType, call) : fromBase64(base64, mimeType)
    return { image: picture, metadata: ownMetadata }
  } catch (error) {
    throw asUPPError(error, { provider: call.endpoint.name, modality: 'image' }) // invalid base64
  }
}

/** Makes an image. Its type is read from the bytes first, because the vendor may name a wrong type. */
function fromBase64(base64: string, mimeType?: string): ImageBlock {
  const data = strictBase64(base64)
  // 64 characters are enough for every signature, and a multiple of four, as base64 requires.
  const typeInBytes = imageTypeOf(decodeBase64(data.slice(0, 64)))
  return imageOf({ type: 'base64', data }, typeInBytes ?? mimeType ?? 'image/png')
}

function imageTypeOf(bytes: Uint8Array): string | undefined {
  const type = mediaTypeOf(bytes)
  return type?.startsWith('image/') ? type : undefined
}

/** One event of an image stream, before its image was downloaded or decoded. */
export type ImageFrame =
  | { readonly type: 'preview'; readonly index: number; readonly image: VendorImage }
  | { readonly type: 'image'; readonly index: number; readonly image: VendorImage }
  | { readonly type: 'end'; readonly usage?: ImageUsage; readonly metadata?: JsonObject }

/**
 * Streams images while they are generated. If the server does not stream, yields only the finished images.
 */
export async function* streamImages(
  call: ImageCall,
  createDecoder: () => FrameDecoder<ImageFrame>,
  decode: (body: JsonObject) => DecodedImages,
): AsyncGenerator<ImageStreamEvent<ImageBlock>, void, undefined> {
  const vendorCall = imageVendorCall(call, 'text/event-stream')
  const open: OpenReader<readonly ImageFrame[]> = (answer) =>
    chooseReader(answer, {
      isStreaming: true,
      framing: 'sse',
      whole: () =>
        new JsonReader(answer, vendorCall, (json) => {
          const { images, usage, metadata } = decodeWhole(json, call.endpoint.name, decode)
          return [
            ...images.map((image, index) => ({ type: 'image' as const, index, image })),
            { type: 'end', usage, metadata },
          ]
        }),
      frames: () =>
        new FrameReader<ImageFrame>(answer, {
          framing: 'sse',
          decoder: createDecoder(),
          context: contextOf(vendorCall),
          isHeld: () => false,
          isLast: () => false,
        }),
    })
  for await (const frames of new VendorRun(vendorCall, open)) {
    for (const frame of frames) {
      if (frame.type === 'end') {
        const { usage, metadata } = frame
        yield { type: 'end', usage, metadata: metadata && { [call.endpoint.name]: metadata } }
        continue
      }
      const { type, index } = frame
      const picture = await toGenerated(frame.image, call)
      yield type === 'preview'
        ? { type, index, image: picture.image }
        : { type, index, image: picture }
    }
  }
}

/**
 * Downloads an image that the vendor returned as an address, without the vendor's key or headers. Addresses
 * inside this network are not fetched, except on the host that the caller configured. If the download fails,
 * the image keeps its address, because the image was paid for and the caller can still try to download it.
 */
async function downloadImage(
  url: string | undefined,
  mimeType: string | undefined,
  call: ImageCall,
): Promise<ImageBlock> {
  if (url === undefined)
    throw new UPPError(
      `${call.endpoint.name} answered with an image that has neither data nor address.`,
      {
        code: ErrorCode.InvalidResponse,
        provider: call.endpoint.name,
        modality: 'image',
      },
    )
  const data = parseDataUrl(url)
  if (data) return fromBase64(data.data, data.mimeType)
  const address = imageOf({ type: 'url', url }, mimeType ?? 'image/*')
  if (!mayFetch(url, call)) return address
  try {
    const bytes = await fetchBytes(new URL(url), call)
    return imageOf({ type: 'bytes', data: bytes }, imageTypeOf(bytes) ?? mimeType ?? 'image/png')
  } catch (error) {
    if (isUPPError(error) && error.code === ErrorCode.Cancelled) throw error
    return address
  }
}

function imageOf(source: ImageSource, mimeType: string): ImageBlock {
  return { type: 'image', source, mimeType }
}

function mayFetch(url: string, { endpoint, request }: ImageCall): boolean {
  if (!URL.canParse(url)) return false
  const { protocol, host } = new URL(url)
  const own = new URL(request.config.baseUrl ?? endpoint.baseUrl)
  if (host === own.host) return protocol === own.protocol
  return protocol === 'https:' && isPublicAddress(new URL(url).hostname)
}

async function fetchBytes(url: URL, { endpoint, request }: ImageCall): Promise<Uint8Array> {
  const { apiKey: _key, headers: _headers, baseUrl: _base, ...config } = request.config
  const call: VendorCall = {
    endpoint: {
      name: endpoint.name,
      baseUrl: url.origin,
      keyVariables: [],
      headers: {},
      authHeaders: () => ({}),
    },
    modality: 'image',
    config,
    signal: request.signal,
    method: 'GET',
    path: `${url.pathname}${url.search}`,
    headers: { accept: 'image/*' },
    decodeError: ({ status }) => ({ message: `The image could not be fetched (HTTP ${status}).` }),
  }
  return runForOne(call, (answer) => new BytesReader(answer))
}

class BytesReader implements AnswerReader<Uint8Array> {
  readonly #answer: VendorAnswer
  #done = false

  constructor(answer: VendorAnswer) {
    this.#answer = answer
  }

  async next(): Promise<Uint8Array | undefined> {
    if (this.#done) return undefined
    this.#done = true
    return this.#answer.bytes()
  }
}
