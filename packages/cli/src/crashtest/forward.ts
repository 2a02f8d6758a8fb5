import http from 'node:http'
import https from 'node:https'
import { isThisMachine } from './preload/request-pattern.ts'

/** Headers that belong to one connection, not to the request. */
const CONNECTION_HEADERS = [
  'connection',
  'keep-alive',
  'transfer-encoding',
  'content-length',
  'host',
]

/** Sends a request to its real address, and resolves with the response when its headers are there. */
export function forward(
  { method, url, headers, body }: ForwardedRequest,
  signal: AbortSignal,
): Promise<http.IncomingMessage> {
  return new Promise((resolve, reject) => {
    const target = new URL(url)
    const send = target.protocol === 'https:' ? https.request : http.request
    const request = send(
      target,
      {
        method,
        headers: {
          ...Object.fromEntries(
            Object.entries(headers).filter(([name]) => !CONNECTION_HEADERS.includes(name)),
          ),
          ...(body.length > 0 && { 'content-length': body.length }),
        },
        // Servers of this machine sign their own certificates.
        rejectUnauthorized: !isThisMachine(target.hostname),
        agent: false,
        signal,
      },
      resolve,
    )
    request.once('error', reject)
    request.end(body)
  })
}

/** A request as the recorder has read it. */
export interface ForwardedRequest {
  readonly method: string
  readonly url: string
  readonly headers: http.IncomingHttpHeaders
  readonly body: Buffer
}
