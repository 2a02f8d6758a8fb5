import { createHmac } from 'node:crypto'
import { lookup as systemLookup, type LookupAddress } from 'node:dns'
import { request as httpRequest } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { isIP, type LookupFunction } from 'node:net'
import { isPrivateAddress, SkeinError } from '@skein/base'

/** One signed request to a receiver. */
export interface Post {
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  readonly allowsPrivate: boolean
  readonly signal: AbortSignal
}

const TIMEOUT_MS = 15_000

/** Posts JSON and returns the status. Redirects are not followed, and the body of the answer is not read. */
export function post({ url, headers, body, allowsPrivate, signal }: Post): Promise<number> {
  const host = url.hostname.replace(/^\[|\]$/g, '')
  // Numeric addresses are not resolved, so `publicLookup` does not check them.
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
      lookup: allowsPrivate ? undefined : publicLookup,
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

/**
 * Resolves host names to public addresses only. The connection itself uses this resolver, so that a name
 * cannot resolve to another address between the check and the use.
 */
const publicLookup: LookupFunction = (hostname, options, callback) => {
  systemLookup(hostname, { ...options, all: true }, (error, addresses: LookupAddress[]) => {
    const [first] = addresses ?? []
    if (error || !first) return callback(error ?? privateAddress(hostname), '', 4)
    if (addresses.some(({ address }) => isPrivateAddress(address)))
      return callback(privateAddress(hostname), '', 4)
    if (options.all) callback(null, addresses)
    else callback(null, first.address, first.family)
  })
}

function privateAddress(hostname: string): SkeinError {
  return new SkeinError(`"${hostname}" is an address that webhooks are not sent to.`, {
    code: 'WEBHOOK_ADDRESS_PRIVATE',
    hint: 'Set allowPrivateAddresses if it is meant.',
  })
}

/** Decodes the key from a secret of the form `whsec_<base64>`. */
export function keyOf(secret: string): Uint8Array {
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64')
  if (secret.startsWith('whsec_') && key.length >= 24 && key.length <= 64) return key
  throw new SkeinError('The secret of a webhook is not `whsec_` and 24 to 64 bytes in base64.', {
    code: 'WEBHOOK_INVALID',
    hint: 'Make one with `echo whsec_$(openssl rand -base64 32)`.',
  })
}

/**
 * Creates the headers of Standard Webhooks. With the secret, a receiver can verify the origin of body and
 * time.
 */
export function signedHeaders(
  { id, body, at }: { readonly id: string; readonly body: string; readonly at: number },
  key: Uint8Array,
): Readonly<Record<string, string>> {
  const timestamp = Math.floor(at / 1000)
  const signature = createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')
  return {
    'webhook-id': id,
    'webhook-timestamp': String(timestamp),
    'webhook-signature': `v1,${signature}`,
  }
}
