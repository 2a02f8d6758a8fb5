import { request as httpRequest } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { isIP } from 'node:net'
import { isPrivateAddress, privateAddress, publicLookup } from './private-address.ts'

export interface Post {
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  readonly allowsPrivate: boolean
  readonly signal: AbortSignal
}

const TIMEOUT_MS = 15_000

/** Posts JSON and answers the status. Redirects are not followed, and nothing of the answer is kept. */
export function post({ url, headers, body, allowsPrivate, signal }: Post): Promise<number> {
  const host = url.hostname.replace(/^\[|\]$/g, '')
  // Addresses in digits are never looked up.
  if (!allowsPrivate && isIP(host) && isPrivateAddress(host))
    return Promise.reject(privateAddress(host))
  const send = url.protocol === 'https:' ? httpsRequest : httpRequest
  return new Promise((resolve, reject) => {
    const request = send(url, {
      method: 'POST',
      signal,
      timeout: TIMEOUT_MS,
      headers: {
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(body),
        'user-agent': 'skein-webhooks',
        ...headers,
      },
      ...(!allowsPrivate && { lookup: publicLookup }),
    })
    request.on('response', (response) => {
      response.resume()
      resolve(response.statusCode ?? 0)
    })
    request.on('timeout', () => request.destroy(new Error('The receiver did not answer in time.')))
    request.on('error', reject)
    request.end(body)
  })
}
