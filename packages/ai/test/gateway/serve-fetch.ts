import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import type { ReadableStream as NodeStream } from 'node:stream/web'

export interface FetchServer {
  readonly url: string
  [Symbol.asyncDispose](): Promise<void>
}

/** A `fetch` handler behind a socket, as any server would mount it. */
export async function serveFetch(
  handler: (request: Request) => Promise<Response>,
): Promise<FetchServer> {
  const server = createServer(async (incoming, outgoing) => {
    const left = new AbortController()
    outgoing.on('close', () => left.abort())
    const hasBody = incoming.method !== 'GET'
    const request = new Request(`http://${incoming.headers.host}${incoming.url}`, {
      method: incoming.method ?? 'GET',
      headers: incoming.headers as Record<string, string>,
      signal: left.signal,
      ...(hasBody && { body: Readable.toWeb(incoming) as ReadableStream, duplex: 'half' }),
    } as RequestInit)
    const response = await handler(request)
    outgoing.writeHead(response.status, Object.fromEntries(response.headers))
    if (!response.body) return void outgoing.end()
    const body = Readable.fromWeb(response.body as NodeStream)
    outgoing.on('close', () => body.destroy())
    body.on('error', () => outgoing.destroy())
    body.pipe(outgoing)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    [Symbol.asyncDispose]: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}
