import type { Client } from '@skein/runtime/client'
import { errorText, type Output } from '../terminal/output.ts'
import { loadDefinitions, localFetch, modelsOf, openRuntime, type RuntimeFetch } from './embed.ts'
import { isAnswering, readServerFile } from './server-file.ts'

/** A client of a runtime that runs in a server or in this process. */
export interface ServerConnection {
  readonly client: Client
  /** The address of the server; absent when the runtime is in this process and ends with it. */
  readonly url?: string
  /** Sends a request to a path of the server, with the key. */
  send(path: string, init: RequestInit): Promise<Response>
  close(): Promise<void>
}

/** The flags that select the runtime. */
export interface ConnectTarget {
  readonly url?: string
  readonly key?: string
  readonly folder?: string
}

/** Connects, does the work, and closes the connection even when the work fails. */
export async function withConnection<T>(
  target: ConnectTarget,
  output: Output,
  work: (connection: ServerConnection) => Promise<T>,
  { works = false }: { readonly works?: boolean } = {},
): Promise<T> {
  const connection = await connect(target, output, works)
  try {
    return await work(connection)
  } finally {
    await connection.close()
  }
}

/**
 * Connects to the named server, or to the server that runs in this folder. Without a server, this process
 * opens the store itself. It then also runs threads if `works` is true; commands that only read pass false.
 */
async function connect(
  target: ConnectTarget,
  output: Output,
  works: boolean,
): Promise<ServerConnection> {
  const running = readServerFile()
  const url =
    target.url ??
    process.env['SKEIN_URL'] ??
    (running && (await isAnswering(running.url)) ? running.url : undefined)
  const { createClient } = await import('@skein/runtime/client')
  if (url !== undefined) {
    const apiKey = target.key ?? process.env['SKEIN_KEY']
    const client = createClient({ url, apiKey })
    return { client, url, send: sender(url, fetch, apiKey), close: async () => undefined }
  }
  const registry = await loadDefinitions(target.folder)
  const runtime = await openRuntime(registry, {
    onError: (error) => output.say(`error: ${errorText(error)}`),
  })
  if (works) {
    output.say(output.paint('dim', modelsOf(registry)))
    await runtime.start()
  }
  const own = await localFetch(runtime)
  const client = createClient({ url: LOCAL_URL, fetch: own })
  return { client, send: sender(LOCAL_URL, own), close: () => runtime.stop({ graceMs: 0 }) }
}

/** The address of a runtime in this process, which has no socket. */
const LOCAL_URL = 'http://127.0.0.1'

function sender(url: string, send: RuntimeFetch, key?: string): ServerConnection['send'] {
  const base = url.replace(/\/$/, '')
  return (path, init) => {
    const headers = new Headers(init.headers)
    if (key !== undefined) headers.set('authorization', `Bearer ${key}`)
    return send(`${base}${path}`, { ...init, headers })
  }
}
