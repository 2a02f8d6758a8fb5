import { existsSync } from 'node:fs'
import type { Client } from '@skein/server/client'
import { projectFolder, storeFile } from '../config/project-folder.ts'
import { CommandError, usageError } from '../terminal/command.ts'
import { errorText } from '../terminal/format.ts'
import type { Output } from '../terminal/output.ts'
import { examplesNotice, loadDefinitions } from './definitions.ts'
import { isAnswering, readServerFile } from './server-file.ts'
import { localFetch, type RuntimeFetch } from './local-fetch.ts'
import { modelsOf } from './agent-models.ts'
import { openEmptyRuntime, openRuntime } from './open-runtime.ts'

/** A client of a runtime, which runs in a server or in this process. */
export interface ServerConnection {
  readonly client: Client
  /** The address of the server; absent if the runtime is in this process and ends with it. */
  readonly url?: string
  /** Sends a request to a path of the server, with the API key. */
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
  { works = false, creates = works }: { readonly works?: boolean; readonly creates?: boolean } = {},
): Promise<T> {
  const connection = await connect(target, output, { works, creates })
  try {
    return await work(connection)
  } catch (error) {
    throw connection.url === undefined ? error : withAddress(error, connection.url)
  } finally {
    await connection.close()
  }
}

/** Adds the address to an error about a server that did not answer, or that is not a Skein server. */
function withAddress(error: unknown, url: string): unknown {
  const { code, status } = error as { readonly code?: unknown; readonly status?: unknown }
  const { origin = url, pathname = '/' } = URL.parse(url) ?? {}
  const address = pathname === '/' ? origin : `${origin}${pathname}`
  if (code === 'NOT_REACHED')
    return new CommandError(`No server answers at ${address}.`, {
      code,
      hint: 'Check --url and SKEIN_URL, and that the server runs: skein dev, or skein serve.',
      cause: error,
    })
  if (code === 'UNKNOWN' || error instanceof SyntaxError)
    return new CommandError(
      `The server at ${address} is not a Skein server${status === undefined ? '' : ` (status ${status})`}.`,
      {
        code: 'NOT_SKEIN',
        hint: 'Check --url and SKEIN_URL, with the prefix of the server.',
        cause: error,
      },
    )
  if (code === 'UNAUTHENTICATED' || status === 401)
    return new CommandError(`${address} does not accept the key.`, {
      code: 'UNAUTHENTICATED',
      hint: 'Give a key with --key, or in SKEIN_KEY.',
      cause: error,
    })
  return error
}

/**
 * Connects to the named server, or to the server that runs in this folder. Without a server, this process
 * opens the store itself; if `works` is true, it also runs threads. A store that does not exist is created only if
 * `creates` is true; otherwise the command sees no threads.
 */
async function connect(
  target: ConnectTarget,
  output: Output,
  { works, creates }: { readonly works: boolean; readonly creates: boolean },
): Promise<ServerConnection> {
  const running = readServerFile()
  const url =
    target.url ??
    process.env['SKEIN_URL'] ??
    (running && (await isAnswering(running.url)) ? running.url : undefined)
  const { createClient } = await import('@skein/server/client')
  if (url !== undefined && !/^https?:$/.test(URL.parse(url)?.protocol ?? ''))
    throw usageError(`"${url}" is not an address.`, 'Write it as http://127.0.0.1:4111.')
  if (url !== undefined) {
    const apiKey = target.key ?? process.env['SKEIN_KEY']
    const client = createClient({ url, apiKey })
    return { client, url, send: sender(url, fetch, apiKey), close: async () => undefined }
  }
  const registry = await loadDefinitions(target.folder)
  const isThere = creates || existsSync(storeFile())
  if (!isThere) output.say(`There is no store in ${projectFolder()} or above it.`)
  const runtime = isThere
    ? await openRuntime(registry, { onError: (error) => output.say(`error: ${errorText(error)}`) })
    : await openEmptyRuntime(registry)
  if (works) {
    const notice = examplesNotice(target.folder)
    if (notice !== undefined) output.say(output.paint('dim', notice))
    output.say(output.paint('dim', modelsOf(registry)))
    await runtime.start()
  }
  const own = await localFetch(runtime)
  const client = createClient({ url: LOCAL_URL, fetch: own })
  return { client, send: sender(LOCAL_URL, own), close: () => runtime.stop({ graceMs: 0 }) }
}

/** A placeholder address for a runtime in this process, which has no network address. */
const LOCAL_URL = 'http://127.0.0.1'

function sender(url: string, send: RuntimeFetch, key?: string): ServerConnection['send'] {
  const base = url.replace(/\/$/, '')
  return (path, init) => {
    const headers = new Headers(init.headers)
    if (key !== undefined) headers.set('authorization', `Bearer ${key}`)
    return send(`${base}${path}`, { ...init, headers })
  }
}
