import type * as Http from 'node:http'
import { ErrorCode, UPPError } from '../../contract/error.ts'
import { joinBytes } from '../../media/bytes.ts'
import type { ScriptFunction, ScriptStep } from '../scripted.ts'
import { ConnectionCut } from './faults.ts'
import {
  type Outgoing,
  vendorServer,
  type VendorServer,
  type VendorServerOptions,
} from './vendor-server.ts'

/** A vendor server that listens on 127.0.0.1. */
export interface RunningVendorServer extends VendorServer {
  /** The address without a path, e.g. `http://127.0.0.1:41733`. */
  readonly url: string
  /** The base URL to set for each vendor's client. */
  readonly baseUrls: Readonly<Record<'openai' | 'anthropic' | 'google' | 'ollama', string>>
  /** The number of connections that are open now. */
  readonly openConnections: number
  close(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

interface ProcessLike {
  getBuiltinModule?(name: 'node:http'): typeof Http
}

/** Starts a `vendorServer` on a real socket, on Node, Bun and Deno. Close it when done. */
export async function startVendorServer(
  script: readonly ScriptStep[] | ScriptFunction,
  options: VendorServerOptions & { readonly port?: number } = {},
): Promise<RunningVendorServer> {
  const { process } = globalThis as { process?: ProcessLike }
  const http = process?.getBuiltinModule?.('node:http')
  if (!http) {
    throw new UPPError('This platform has no HTTP server.', {
      code: ErrorCode.InvalidRequest,
      provider: 'skein',
      modality: 'llm',
      hint: 'Use vendorServer(…).fetch, which needs none.',
    })
  }
  const vendor = vendorServer(script, options)
  const server = http.createServer((request, response) => {
    void serve(vendor, request, response)
  })
  let openConnections = 0
  server.on('connection', (socket) => {
    socket.setNoDelay(true)
    openConnections += 1
    socket.on('close', () => (openConnections -= 1))
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(options.port ?? 0, '127.0.0.1', resolve)
  })
  const url = `http://127.0.0.1:${(server.address() as { port: number }).port}`
  const close = (): Promise<void> =>
    new Promise((resolve) => {
      server.close(() => resolve())
      server.closeAllConnections()
    })
  return {
    fetch: vendor.fetch,
    requests: vendor.requests,
    model: vendor.model,
    handle: (incoming) => vendor.handle(incoming),
    url,
    baseUrls: {
      openai: `${url}/v1`,
      anthropic: `${url}/v1`,
      google: `${url}/v1beta`,
      ollama: `${url}/api`,
    },
    get openConnections() {
      return openConnections
    },
    close,
    [Symbol.asyncDispose]: close,
  }
}

/** Answers one request. Never rejects: the client sees any failure as a broken connection. */
async function serve(
  vendor: VendorServer,
  request: Http.IncomingMessage,
  response: Http.ServerResponse,
): Promise<void> {
  const leaving = new AbortController()
  response.on('close', () => {
    if (!response.writableFinished) leaving.abort()
  })
  const headers = new Headers()
  for (const [name, values = []] of Object.entries(request.headersDistinct))
    for (const value of values) headers.append(name, value)
  try {
    const chunks: Uint8Array[] = []
    for await (const chunk of request) chunks.push(chunk as Uint8Array)
    const outgoing = await vendor.handle({
      method: request.method ?? 'GET',
      url: `http://${request.headers.host ?? '127.0.0.1'}${request.url ?? '/'}`,
      headers,
      body: joinBytes(chunks),
      signal: leaving.signal,
    })
    await write(outgoing, response, leaving.signal)
  } catch (error) {
    if (error instanceof ConnectionCut) request.socket.resetAndDestroy()
    else request.socket.destroy()
  }
}

async function write(
  { status, headers, body }: Outgoing,
  response: Http.ServerResponse,
  signal: AbortSignal,
): Promise<void> {
  if (body instanceof Uint8Array) {
    response.writeHead(status, { ...headers, 'content-length': body.length })
    response.end(body)
    return
  }
  response.writeHead(status, headers)
  response.flushHeaders()
  for await (const chunk of body) {
    if (signal.aborted) return
    response.write(chunk)
    // Waits one turn of the event loop between two writes, so that the client reads them separately.
    await new Promise((resolve) => setImmediate(resolve))
  }
  response.end()
}
