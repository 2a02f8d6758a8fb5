import type { ImageSource } from '../content.ts'
import { ErrorCode, isUPPError, UPPError } from '../error.ts'
import { Image } from '../media/image.ts'
import { isPublicAddress } from '../transport/endpoint.ts'
import type { Answer, VendorCall } from '../transport/attempt.ts'
import { runForOne, type AnswerReader } from '../transport/vendor-run.ts'
import { parseDataUrl } from '../wires/media.ts'
import { fromBase64, imageTypeOf, type ImageCall } from './http-image.ts'

/**
 * Fetches an image that the vendor gave by address, without the vendor's key or headers. Addresses
 * inside this network are not fetched, except on the host that the caller configured. What cannot be
 * fetched stays an image with an address: the picture was paid for, and the caller can still try.
 */
export async function downloadImage(
  url: string | undefined,
  mimeType: string | undefined,
  call: ImageCall,
): Promise<Image> {
  if (url === undefined) throw noImage(call)
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

function imageOf(source: ImageSource, mimeType: string): Image {
  return Image.fromBlock({ type: 'image', source, mimeType })
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
  readonly #answer: Answer
  #done = false

  constructor(answer: Answer) {
    this.#answer = answer
  }

  async next(): Promise<Uint8Array | undefined> {
    if (this.#done) return undefined
    this.#done = true
    return this.#answer.bytes()
  }
}

function noImage({ endpoint }: ImageCall): UPPError {
  return new UPPError(
    `${endpoint.name} answered with an image that has neither data nor address.`,
    {
      code: ErrorCode.InvalidResponse,
      provider: endpoint.name,
      modality: 'image',
    },
  )
}
