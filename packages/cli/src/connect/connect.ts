import { type SafeSettings, type StoreAddress } from '../config/refusals.ts'
import type { SkeinConfig } from '../config/config.ts'
import { projectFolder } from '../config/project-folder.ts'
import type {
  GovernanceKeys,
  RuntimeOptions,
  Store,
  StoreRow,
  ThreadInfo,
  WaitingItem,
} from '@skein/runtime'
import { type JsonObject, tryParseJson } from '@skein/base'
import { hostname } from 'node:os'
import { existsSync, readFileSync, statSync } from 'node:fs'
import type { Client } from '@skein/server/client'
import { CommandError, usageError } from '../terminal/command.ts'
import { type Output, errorText } from '../terminal/output.ts'
import {
  type RuntimeFetch,
  examplesNotice,
  isAnswering,
  loadDefinitions,
  localFetch,
  modelsOf,
  openEmptyRuntime,
  openRuntime,
  readServerFile,
  storeFile,
} from './embed.ts'

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
      `What answers at ${address} is not a server of Skein${status === undefined ? '' : ` (status ${status})`}.`,
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

const UUID_LENGTH = 36

/** Finds the thread with this id, or the only thread whose id begins or ends with the text. */
export async function findThreadByPrefix({ threads }: Client, text: string): Promise<ThreadInfo> {
  if (text.length >= UUID_LENGTH) return threads.get(text)
  // A single letter abbreviates nothing.
  const isPart = text.length >= MIN_SHORT_LENGTH
  const matches = isPart ? await threads.list({ idPart: text, limit: MOST_MATCHES }) : []
  const exact =
    matches.find(({ id }) => id === text) ??
    (!isPart || matches.length === MOST_MATCHES ? await threadOf(threads, text) : undefined)
  const found = exact ? [exact] : matches
  const [only, another] = found
  if (!only)
    throw new CommandError(`There is no thread ${text}.`, {
      code: 'THREAD_NOT_FOUND',
      hint: '`skein thread list` lists all threads.',
    })
  if (!another) return only
  const some = found.slice(0, 5).map(({ id }) => id)
  const count = found.length < MOST_MATCHES ? found.length : `At least ${found.length}`
  throw new CommandError(`${count} threads begin or end with ${text}.`, {
    code: 'THREAD_AMBIGUOUS',
    hint: `Write more of the id: ${some.join(', ')}.`,
  })
}

/** The thread with this whole id; undefined if there is none. */
async function threadOf({ get }: Client['threads'], id: string): Promise<ThreadInfo | undefined> {
  if (id === '') return undefined
  return get(id).catch((error: unknown) => {
    if ((error as { readonly code?: unknown }).code === 'THREAD_NOT_FOUND') return undefined
    throw error
  })
}

/** How many of the last characters of an id lists show: enough to differ among millions of threads. */
const SHORT_LENGTH = 8

/**
 * Abbreviates ids to their ends, which are random: their beginnings are times, and alike. All ids of a list are cut to
 * the same length, at which they differ.
 */
export function shortIdsOf(ids: readonly string[]): readonly string[] {
  const all = [...new Set(ids)]
  let length = SHORT_LENGTH
  while (new Set(all.map((id) => id.slice(-length))).size < all.length) length++
  return ids.map((id) => id.slice(-length))
}

/** The shortest text that abbreviates an id. */
const MIN_SHORT_LENGTH = 2

/**
 * Whether a text abbreviates an id. The end counts too: ids begin with their creation time, so recent ids begin alike.
 */
function isShortFor(text: string, id: string): boolean {
  return text.length >= MIN_SHORT_LENGTH && (id.startsWith(text) || id.endsWith(text))
}

/** Finds the only waiting call of a kind that matches the ids, which may be abbreviated. */
export async function findWaiting(
  { inbox }: Client,
  wanted: Exclude<WaitingItem['kind'], 'input'>,
  [thread = '', interrupt]: readonly string[],
): Promise<WaitingItem> {
  const matches = (text: string, id: string): boolean => id === text || isShortFor(text, id)
  const about = thread.length < MIN_SHORT_LENGTH ? { threadId: thread } : { threadIdPart: thread }
  const asked = { ...about, kind: wanted, interruptIdPart: interrupt }
  const found = (await inbox.list({ ...asked, limit: MOST_MATCHES })).filter(
    ({ threadId, interruptId }) =>
      matches(thread, threadId) && (interrupt === undefined || matches(interrupt, interruptId)),
  )
  const [only, another] = found
  if (only && !another) return only
  const meant = [thread, interrupt].filter(Boolean).join(' ')
  if (!only)
    throw new CommandError(`No ${ABOUT[wanted]} matches ${meant}.`, {
      code: 'INTERRUPT_NOT_FOUND',
      hint:
        (await inbox.list({ kind: wanted, limit: 1 })).length === 0
          ? NONE_WAITS
          : '`skein inbox` lists the calls that wait.',
    })
  const ids = found.slice(0, 5).map(({ threadId, interruptId }) => `${threadId} ${interruptId}`)
  throw new CommandError(`${found.length} waiting calls match ${meant}.`, {
    code: 'INTERRUPT_AMBIGUOUS',
    hint: `Name one of them: ${ids.join(', ')}.`,
  })
}

/** How many calls are read that match abbreviated ids: enough to tell one from several. */
const MOST_MATCHES = 100

const NONE_WAITS =
  'It may have been decided already: `skein inbox` lists the calls that wait, and there are none.'
const ABOUT = {
  approval: 'call that waits for approval',
  in_doubt: 'call that is in doubt',
  variables: 'request for variables',
} as const

/** A store of `@skein/postgres`, with the methods that `skein store` (copies, backups) and `skein doctor` use. */
export interface PostgresStoreLike extends Store {
  /** Yields everything in the store, as it was at one moment. */
  rows(): AsyncIterable<StoreRow>
  /** Fills a store that has no threads. If it fails, nothing is written. */
  load(rows: AsyncIterable<StoreRow>): Promise<void>
  /** Reads the clock of the database, in ms. */
  now(): Promise<number>
}

/** The part of `@skein/postgres` that commands use. The package is optional, so its types are repeated here. */
export interface PostgresPackage {
  postgresStore(options: {
    readonly connectionString: string
    readonly isPooled?: boolean
  }): Promise<PostgresStoreLike>
  postgresLink(options: {
    readonly connectionString: string
  }): NonNullable<RuntimeOptions['nodes']>['link']
  queueDispatcher(options: object): RuntimeOptions['dispatcher']
}

/** Loads a package that not every installation has. If it is missing, the error names the setting that needs it. */
export async function optionalPackage<T>(name: string, setting: string): Promise<T> {
  try {
    return (await import(name)) as T // safe: all packages are released together, and a test loads them
  } catch (cause) {
    const { code, message } = cause as { readonly code?: unknown; readonly message?: string }
    if (code !== 'ERR_MODULE_NOT_FOUND' || !message?.includes(name)) throw cause
    throw new CommandError(`The setting ${setting} needs ${name}, which is not installed.`, {
      code: 'PACKAGE_MISSING',
      hint: `npm install ${name}`,
      cause,
    })
  }
}

/** Opens the store at an address. */
export async function openStore(
  address: StoreAddress,
  options: { readonly isPooled: boolean },
): Promise<Store> {
  if (address.type === 'postgres') return openPostgres(address.connectionString, options)
  const { sqliteStore } = await import('@skein/runtime')
  return sqliteStore({ path: address.path })
}

/** Opens a store in PostgreSQL. */
export async function openPostgres(
  connectionString: string,
  options: { readonly isPooled?: boolean } = {},
): Promise<PostgresStoreLike> {
  const { postgresStore } = await optionalPackage<PostgresPackage>('@skein/postgres', 'store')
  return postgresStore({ connectionString, ...options })
}

/** Reads the keys that sign approvals and audit logs, from the file of `skein keys` or from a folder. */
export async function readGovernanceKeys(path: string): Promise<GovernanceKeys> {
  const { openGovernanceKeys } = await import('@skein/runtime')
  if (statSync(path).isDirectory()) return openGovernanceKeys({ folder: path })
  const keys = tryParseJson(readFileSync(path, 'utf8')) as JsonObject // checked by `checkSettings`
  const setting = async (): Promise<JsonObject> => keys
  return openGovernanceKeys({ store: { setting, setSetting: async () => undefined } })
}
/** Returns the options with which this node works together with others; undefined if it works alone. */
export async function createNodes({
  store,
  nodeSecret: secret,
  config,
}: SafeSettings): Promise<RuntimeOptions['nodes']> {
  if (store.type === 'sqlite' || secret === undefined) return undefined
  const { postgresLink } = await optionalPackage<PostgresPackage>('@skein/postgres', 'store')
  const link = postgresLink({ connectionString: config.storeDirect ?? store.connectionString })
  return { link, secret, address: nodeAddress(config) }
}
/** Returns the address of this node; `{hostname}` in it is the name of this machine or container. */
export function nodeAddress({ nodeAddress: address }: SkeinConfig): string | undefined {
  return address?.replace('{hostname}', hostname())
}
interface RestatePackage {
  restateDispatcher(options: object): RuntimeOptions['dispatcher']
}
export async function createDispatcher(
  settings: SafeSettings,
): Promise<RuntimeOptions['dispatcher']> {
  const { engine, store, config } = settings
  if (engine === 'local' || store.type === 'sqlite') return undefined
  if (engine === 'queue') {
    const { queueDispatcher } = await optionalPackage<PostgresPackage>('@skein/postgres', 'engine')
    const connectionString = config.storeDirect ?? store.connectionString
    return queueDispatcher({ connectionString })
  }
  const { restateDispatcher } = await optionalPackage<RestatePackage>('@skein/restate', 'engine')
  return restateDispatcher({
    ingressUrl: config.restateIngress,
    adminUrl: config.restateAdmin,
    address: config.restateAddress,
    listen: { port: config.restatePort ?? 9080, host: settings.host },
  })
}
