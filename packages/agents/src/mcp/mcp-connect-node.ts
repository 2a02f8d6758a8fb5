import type { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { isPrivateAddress, messageOf } from '@skein/base'
import { type Tool } from '@skein/ai'
import { invalidUse } from '../contract/agent-error.ts'
import type { Middleware } from '../contract/agent-types.ts'
import { Elicitations } from './mcp-elicitations.ts'
import { followedFetch, httpFailureOf, type McpHeaders } from './mcp-http.ts'
import { type ConnectionFailure, type ConnectionReports, McpLink } from './mcp-link.ts'
import { type McpClient, mcpTools, type McpToolsOptions } from './mcp-tools.ts'
import { SentSecrets } from './sent-secrets.ts'

/** The address or the command of an MCP server. */
export type McpServerSource =
  | {
      /** `https:` or `http:`; streamable HTTP. */
      readonly url: string
      /** Sent with every request, e.g. an authorization; a function is called for each request. */
      readonly headers?: McpHeaders
      /**
       * Whether the server may be on this machine or in a private network. Default false: an address that
       * someone else supplied must not give access to services that only this machine can reach.
       */
      readonly allowsPrivate?: boolean
    }
  | {
      /** Started as a process without a shell; stdin and stdout carry the protocol. */
      readonly command: string
      readonly args?: readonly string[]
      /** Environment variables, added to the few that the SDK passes on from this process. */
      readonly env?: Readonly<Record<string, string>>
      readonly cwd?: string
    }

/** A connection to an MCP server. */
export interface McpConnection {
  /** The tools that the server lists now. */
  readonly tools: readonly Tool[]
  /** Gives each step of a run the newest tools, after the server has said that its list changed. */
  readonly middleware: Middleware
  close(): Promise<void>
}

/**
 * Connects to an MCP server by address or command, with the installed `@modelcontextprotocol/sdk`.
 *
 *     const files = await connectMcp({ command: 'npx', args: ['server-filesystem', '.'] }, { prefix: 'files_' })
 *     const coder = agent({ model, tools: [...files.tools], middleware: [files.middleware] })
 *
 * If the server asks the person something in the middle of a call (elicitation), the call becomes an
 * interrupt of kind `input` with the server's message and schema. `approve` with the person's `data` runs the call
 * again and gives the data to the server. So the server repeats whatever it did before it asked.
 *
 * A lost connection (the server's process ended, the server has forgotten the session, a message was too long) is
 * opened again by the next call. A call that ran at that moment fails with `MCP_OUTCOME_UNKNOWN`, unless the server
 * declares the tool read-only or idempotent: then it is repeated. While the server cannot be reached, calls fail with
 * `MCP_UNAVAILABLE`; the wait between two attempts grows up to 30 seconds.
 */
export async function connectMcp(
  source: McpServerSource,
  options: McpToolsOptions = {},
): Promise<McpConnection> {
  const sdk = await loadSdk()
  const elicitations = new Elicitations()
  const secrets = new SentSecrets()
  const openClient = async (reports: ConnectionReports): Promise<Client> => {
    const client = new sdk.Client(
      { name: 'skein', version: '1.0.0' },
      { capabilities: { elicitation: {} } },
    )
    elicitations.restart()
    client.setRequestHandler(sdk.ElicitRequestSchema, ({ params }) =>
      elicitations.ask({ ...params }),
    )
    client.setNotificationHandler(sdk.ToolListChangedNotificationSchema, refreshTools)
    client.onclose = () => reports.lost('The connection was closed.')
    client.onerror = (error) => {
      const { message } = error
      // The SDK closes the connection of a process that writes a longer line.
      if (message.includes('exceeded maximum size'))
        reports.lost('Its answer was longer than the limit of 10 MB.', { isAnswerTooLong: true })
      else if (message.startsWith('Maximum reconnection attempts')) reports.resumptionFailed()
    }
    await client.connect(await openTransport(source, { reports, secrets }))
    return client
  }
  const link = new McpLink({
    name: nameOf(source),
    open: async (reports) => (await openClient(reports)) as McpClient & Client,
    failureOf,
    withoutSecrets: (error) => secrets.removeFrom(error),
    onReconnect: refreshTools,
  })
  const list = async (): Promise<readonly Tool[]> => {
    const tools = await mcpTools(link, options)
    return tools.map((tool) => elicitations.wrap(tool))
  }
  let tools: readonly Tool[] = []
  const own = new Set<Tool>()
  let refresh: Promise<void> = Promise.resolve()
  function refreshTools(): void {
    // If the new list cannot be read, the old one stays; the next notification tries again.
    refresh = refresh.then(list).then(
      (next) => {
        tools = next
        for (const tool of next) own.add(tool)
      },
      () => {},
    )
  }
  await link.open()
  try {
    tools = await list()
  } catch (error) {
    await link.close()
    throw error
  }
  for (const tool of tools) own.add(tool)
  return {
    get tools() {
      return tools
    },
    middleware: {
      name: 'mcp-tools',
      async onInference(request) {
        await refresh
        const others = request.tools.filter((tool) => !own.has(tool))
        const isCurrent =
          others.length + tools.length === request.tools.length &&
          tools.every((tool) => request.tools.includes(tool))
        return isCurrent ? undefined : { tools: [...others, ...tools] }
      },
    },
    close: () => link.close(),
  }
}

/** Returns the name of a server in errors. The path and the arguments may contain secrets. */
function nameOf(source: McpServerSource): string {
  if ('command' in source) return JSON.stringify(source.command)
  return URL.canParse(source.url) ? new URL(source.url).host : 'at that address'
}

/** Returns how a request failed, if the reason was the connection. */
function failureOf(error: unknown): ConnectionFailure | undefined {
  const { code, name } = error as { code?: unknown; name?: unknown }
  // An error of JSON-RPC is the server's answer. Its code is no HTTP status, although it may be the same number.
  if (name === 'McpError') return undefined
  // A client that gets 404 for its session starts a new one (MCP, streamable HTTP, session management). Servers of
  // the SDK answer 400 after a restart. Neither has carried out the request.
  if (code === 404) return 'no_session'
  if (code === 400 && /session|not initialized/i.test(messageOf(error))) return 'no_session'
  return httpFailureOf(error)
}

interface Sdk {
  readonly Client: typeof Client
  readonly ElicitRequestSchema: typeof import('@modelcontextprotocol/sdk/types.js').ElicitRequestSchema
  readonly ToolListChangedNotificationSchema: typeof import('@modelcontextprotocol/sdk/types.js').ToolListChangedNotificationSchema
}

/** Loads the optional SDK when it is needed. Module names are variables, so that bundlers leave the SDK out. */
async function loadSdk(): Promise<Sdk> {
  const [client, types] = await Promise.all([load('client/index.js'), load('types.js')])
  return { ...client, ...types } as unknown as Sdk // the exports of the SDK's own modules
}

async function load(path: string): Promise<Record<string, unknown>> {
  const name = `@modelcontextprotocol/sdk/${path}`
  try {
    return (await import(/* @vite-ignore */ name)) as Record<string, unknown>
  } catch (error) {
    throw invalidUse(
      'connectMcp() needs the package @modelcontextprotocol/sdk.',
      `Install it: npm install @modelcontextprotocol/sdk. (${(error as Error).message})`,
    )
  }
}

type Transport = Parameters<Client['connect']>[0]
type TransportClass = new (...args: unknown[]) => Transport

async function openTransport(
  source: McpServerSource,
  { reports, secrets }: { readonly reports: ConnectionReports; readonly secrets: SentSecrets },
): Promise<Transport> {
  if ('command' in source) {
    const { command, args = [], env = {}, cwd } = source
    secrets.add(env)
    const { StdioClientTransport, getDefaultEnvironment } = await load('client/stdio.js')
    const base = (getDefaultEnvironment as () => Record<string, string>)()
    return new (StdioClientTransport as TransportClass)({
      command,
      args: [...args],
      env: { ...base, ...env },
      cwd,
      stderr: 'ignore',
    })
  }
  const { url, headers = {}, allowsPrivate = false } = source
  const target = await checkAddress(url, allowsPrivate)
  secrets.add(Object.fromEntries(target.searchParams))
  const { StreamableHTTPClientTransport } = await load('client/streamableHttp.js')
  const send = allowsPrivate ? fetch : pinnedFetch()
  // The address of each request is checked, because the server may tell the client to use another one.
  // Redirects are errors, because `fetch` would follow them without this check.
  const sendChecked = async (address: string | URL, init?: RequestInit): Promise<Response> =>
    send(await checkAddress(String(address), allowsPrivate), { ...init, redirect: 'error' })
  return new (StreamableHTTPClientTransport as TransportClass)(target, {
    fetch: followedFetch(sendChecked, { headers, secrets, reports }),
  })
}

/**
 * Throws unless the address is http(s) without credentials and, unless `allowsPrivate`, outside private
 * networks.
 */
async function checkAddress(text: string, allowsPrivate: boolean): Promise<URL> {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (!url || !/^https?:$/.test(url.protocol) || url.username !== '' || url.password !== '')
    throw invalidUse('The address of an MCP server is http or https, without a name or password.')
  if (allowsPrivate) return url
  const host = url.hostname.replace(/^\[|\]$/g, '')
  const isLiteral = /^[\d.]+$/.test(host) || host.includes(':')
  const addresses = isLiteral ? [host] : await resolve(host)
  if (addresses.length > 0 && !addresses.some(isPrivateAddress)) return url
  throw notPublic(url.host)
}

function notPublic(host: string): Error {
  return invalidUse(
    `The MCP server at ${host} is not on the public internet.`,
    'If you trust the address, pass allowsPrivate: true.',
  )
}

interface Builtins {
  (name: 'node:dns'): typeof import('node:dns') | undefined
  (name: 'node:http'): typeof import('node:http') | undefined
  (name: 'node:https'): typeof import('node:https') | undefined
  (name: 'node:stream'): typeof import('node:stream') | undefined
}

/** Gives access to Node's built-in modules, also in Bun, Deno and workers; undefined in a browser. */
const { process } = globalThis as { process?: { getBuiltinModule?: Builtins } }

async function resolve(host: string): Promise<readonly string[]> {
  const dns = process?.getBuiltinModule?.('node:dns')
  if (!dns) return [] // without a way to resolve names nothing can be said about them
  try {
    return (await dns.promises.lookup(host, { all: true })).map(({ address }) => address)
  } catch {
    return []
  }
}

/**
 * Returns a `fetch` that connects only to public addresses. The platform's `fetch` resolves a name by itself,
 * after any check, so that a name could point to a private address by then (DNS rebinding). Here the address
 * that was checked is the one that is connected to. Redirects are errors.
 */
export function pinnedFetch(
  isPrivate: (address: string) => boolean = isPrivateAddress,
): (url: URL, init?: RequestInit) => Promise<Response> {
  const [dns, http, https, stream] = [
    process?.getBuiltinModule?.('node:dns'),
    process?.getBuiltinModule?.('node:http'),
    process?.getBuiltinModule?.('node:https'),
    process?.getBuiltinModule?.('node:stream'),
  ]
  if (!dns || !http || !https || !stream)
    throw invalidUse(
      'This platform cannot check which address a name is connected to.',
      'If you trust the address, pass allowsPrivate: true.',
    )
  const lookup: import('node:net').LookupFunction = (host, options, callback) =>
    dns.lookup(host, { ...options, all: true }, (error, found) => {
      const [first] = found ?? []
      if (error || !first || found.some(({ address }) => isPrivate(address)))
        callback(error ?? notPublic(host), '', 4)
      else if (options.all) callback(null, found)
      else callback(null, first.address, first.family)
    })
  // These HTTP agents are not shared, because a shared one may hold connections that were not checked.
  const plain = new http.Agent({ keepAlive: true })
  const secure = new https.Agent({ keepAlive: true })
  return (url, init = {}) =>
    new Promise((resolve, reject) => {
      const { method = 'GET', headers, body, signal } = init
      const isSecure = url.protocol === 'https:'
      const request = (isSecure ? https.request : http.request)(url, {
        method,
        headers: Object.fromEntries(new Headers(headers)),
        agent: isSecure ? secure : plain,
        lookup,
        signal: signal ?? undefined,
      })
      request.on('error', reject)
      request.on('response', (answer) => {
        const { statusCode: status = 0, statusMessage: statusText, headersDistinct } = answer
        if (status >= 300 && status < 400 && status !== 304) {
          answer.destroy()
          return reject(new TypeError('The MCP server answered with a redirect.'))
        }
        const pairs = Object.entries(headersDistinct).flatMap(([name, values = []]) =>
          values.map((value): [string, string] => [name, value]),
        )
        const isEmpty = [204, 205, 304].includes(status) || method === 'HEAD'
        if (isEmpty) answer.resume()
        try {
          const content = isEmpty ? null : (stream.Readable.toWeb(answer) as ReadableStream)
          resolve(new Response(content, { status, statusText, headers: pairs }))
        } catch (error) {
          // `Response` refuses some status lines. An error in a listener would end the process.
          answer.destroy()
          reject(error as Error)
        }
      })
      request.end(typeof body === 'string' ? body : undefined)
    })
}
