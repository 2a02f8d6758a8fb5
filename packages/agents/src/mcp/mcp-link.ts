import { type Clock, messageOf, systemClock, untilAborted } from '@skein/base'
import { invalidUse } from '../contract/agent-error.ts'
import { outcomeUnknown, serverUnavailable } from './mcp-connection-error.ts'
import type { McpClient, McpRequestOptions, McpTool } from './mcp-tools.ts'

/** A connected client, as `McpLink` uses it. */
export interface OpenedClient extends McpClient {
  close(): Promise<void>
}

/** How a request failed, if the reason was the connection. Each says what is certain about the request. */
export type ConnectionFailure =
  /** The server does not know the session, so it has not carried out the request. */
  | 'no_session'
  /** There was no connection over which the request could be sent. */
  | 'not_sent'
  /** The connection ended after the request was sent, or may have been. */
  | 'broken'

/** Where an opener reports what happens to its connection. */
export interface ConnectionReports {
  /** The connection is lost. `isAnswerTooLong`: because of a message that was longer than the limit. */
  lost(reason: string, options?: { readonly isAnswerTooLong?: boolean }): void
  /** The running call is being sent. Returns what to call when the response that should carry its answer has ended. */
  callSent(): (end: { readonly isResumable: boolean }) => void
  /** The SDK has given up resuming a response. */
  resumptionFailed(): void
}

/** Opens one connection. */
export type OpenConnection = (reports: ConnectionReports) => Promise<OpenedClient>

/** Settings of an `McpLink`. */
export interface McpLinkOptions {
  /** The name of the server in errors, without anything secret. */
  readonly name: string
  readonly open: OpenConnection
  /** Returns how a request failed; undefined if the server answered it with an error, or a time limit ended it. */
  readonly failureOf: (error: unknown) => ConnectionFailure | undefined
  /** Returns an error without the secrets of the connection. */
  readonly withoutSecrets?: (error: unknown) => unknown
  /** Called after a connection was opened in place of a lost one. */
  readonly onReconnect?: () => void
  readonly clock?: Clock
}

/** The first wait after a failed attempt to connect; it doubles with each further one. */
const FIRST_WAIT_MS = 250
const MAX_WAIT_MS = 30_000
/** How long an answer may take to come out of a response that has ended. */
const ANSWER_GRACE_MS = 1000

/** One connection, until it is lost. */
interface Connection {
  readonly client: OpenedClient
  hasAnswered: boolean
  lost?: { readonly reason: string; readonly isAnswerTooLong: boolean }
  readonly requests: Set<RunningRequest>
}

interface RunningRequest {
  readonly isCall: boolean
  /** Ends the wait for the answer. */
  readonly fail: (error: Error) => void
  /** Whether the response has ended before the answer came, and the SDK tries to resume it. */
  isResuming: boolean
}

/**
 * A client of an MCP server that connects again when its connection was lost: by the next request, and after a
 * failed attempt not before a wait that grows. A call that may have reached the server is repeated only if the
 * server declares its tool read-only or idempotent.
 */
export class McpLink implements McpClient {
  readonly #options: McpLinkOptions
  readonly #clock: Clock
  #connection: Connection | undefined
  #opening: Promise<Connection> | undefined
  #isClosed = false
  #failures = 0
  #retryAt = 0
  #reason = ''
  /** Tools whose calls may be repeated, by the server's own words. */
  #repeatable: ReadonlySet<string> = new Set()

  constructor(options: McpLinkOptions) {
    this.#options = options
    this.#clock = options.clock ?? systemClock
  }

  /** Connects for the first time. A failure is thrown as it is, without secrets. */
  async open(): Promise<void> {
    try {
      this.#connection = await this.#connect()
    } catch (error) {
      throw this.#withoutSecrets(error)
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true
    const connection = this.#connection
    this.#connection = undefined
    await connection?.client.close()
  }

  async listTools(
    params?: { cursor?: string },
    options?: McpRequestOptions,
  ): ReturnType<McpClient['listTools']> {
    const page = await this.#request({
      name: undefined,
      isRepeatable: () => true,
      signal: options?.signal,
      send: (client) => client.listTools(params, options),
    })
    const before = params?.cursor === undefined ? [] : this.#repeatable
    this.#repeatable = new Set([...before, ...page.tools.filter(isRepeatable).map(nameOf)])
    return page
  }

  callTool(
    params: Parameters<McpClient['callTool']>[0],
    resultSchema?: undefined,
    options?: McpRequestOptions,
  ): Promise<unknown> {
    return this.#request({
      name: params.name,
      isRepeatable: () => this.#repeatable.has(params.name),
      signal: options?.signal,
      send: (client) => client.callTool(params, resultSchema, options),
    })
  }

  async #request<T>(request: {
    /** The tool; undefined for the list of tools. */
    readonly name: string | undefined
    readonly isRepeatable: () => boolean
    readonly signal: AbortSignal | undefined
    readonly send: (client: OpenedClient) => Promise<T>
  }): Promise<T> {
    const { name, isRepeatable: mayRepeat, signal, send } = request
    const { name: server, failureOf } = this.#options
    for (let attempt = 1; ; attempt++) {
      const connection = await this.#ready(signal)
      try {
        const answer = await answerOf(connection, { isCall: name !== undefined, send })
        this.#answered(connection)
        return answer
      } catch (thrown) {
        signal?.throwIfAborted()
        const failure = connection.lost ? 'broken' : failureOf(thrown)
        const error = this.#withoutSecrets(thrown)
        if (!failure) {
          this.#answered(connection) // with an error
          throw error
        }
        this.#drop(connection, { reason: sentence(messageOf(error)), isAnswerTooLong: false })
        const { reason, isAnswerTooLong } = connection.lost!
        if (failure === 'not_sent') this.#failed(reason)
        const isSafe = failure === 'no_session' || (failure === 'broken' && mayRepeat())
        if (isSafe && !isAnswerTooLong && attempt === 1 && !this.#isClosed) continue
        if (failure !== 'broken' || name === undefined) throw this.#unavailable(error)
        throw outcomeUnknown(server, { tool: name, reason, cause: error })
      }
    }
  }

  /** Returns the connection; opens one if there is none and the wait after the last failure is over. */
  async #ready(signal: AbortSignal | undefined): Promise<Connection> {
    if (this.#isClosed)
      throw invalidUse(`The connection to the MCP server ${this.#options.name} was closed.`)
    if (this.#connection) return this.#connection
    if (!this.#opening) {
      if (this.#clock.now() < this.#retryAt) throw this.#unavailable()
      this.#opening = this.#reconnect().finally(() => (this.#opening = undefined))
      this.#opening.catch(() => {}) // every request that waits may be cancelled before it fails
    }
    return signal ? untilAborted(signal, this.#opening, ({ reason }) => reason) : this.#opening
  }

  async #reconnect(): Promise<Connection> {
    let connection: Connection
    try {
      connection = await this.#connect()
    } catch (thrown) {
      const error = this.#withoutSecrets(thrown)
      this.#failed(sentence(messageOf(error)))
      throw this.#unavailable(error)
    }
    if (this.#isClosed) {
      await connection.client.close()
      throw this.#unavailable()
    }
    this.#connection = connection
    this.#options.onReconnect?.()
    return connection
  }

  async #connect(): Promise<Connection> {
    let connection: Connection | undefined
    const client = await this.#options.open({
      lost: (reason, { isAnswerTooLong = false } = {}) => {
        if (connection) this.#drop(connection, { reason, isAnswerTooLong })
      },
      callSent: () => {
        // The calls of a connection run one after the other (`Elicitations`), so there is one at most. Its response may
        // end while a later call runs, if its client did not wait for the answer.
        const call = connection && runningCall(connection)
        return ({ isResumable }) => {
          if (!call) return
          call.isResuming = isResumable
          if (isResumable) return
          setTimeout(() => {
            if (connection?.requests.has(call))
              this.#drop(connection, { reason: NO_ANSWER, isAnswerTooLong: false })
          }, ANSWER_GRACE_MS)
        }
      },
      resumptionFailed: () => {
        if (connection && runningCall(connection)?.isResuming !== false)
          this.#drop(connection, { reason: NO_ANSWER, isAnswerTooLong: false })
      },
    })
    connection = { client, hasAnswered: false, requests: new Set() }
    return connection
  }

  #answered(connection: Connection): void {
    connection.hasAnswered = true
    this.#failures = 0
  }

  #drop(connection: Connection, lost: NonNullable<Connection['lost']>): void {
    connection.lost ??= lost
    for (const { fail } of connection.requests) fail(new Error(lost.reason))
    if (this.#connection !== connection) return
    this.#connection = undefined
    this.#reason = lost.reason
    // A server that ends before it has answered anything is waited for like one that cannot be reached.
    if (!connection.hasAnswered) this.#failed(lost.reason)
    void connection.client.close().catch(() => {}) // it is lost already
  }

  #withoutSecrets(error: unknown): unknown {
    return this.#options.withoutSecrets?.(error) ?? error
  }

  #failed(reason: string): void {
    this.#reason = reason
    this.#retryAt =
      this.#clock.now() + Math.min(MAX_WAIT_MS, FIRST_WAIT_MS * 2 ** Math.min(this.#failures, 20))
    this.#failures++
  }

  #unavailable(cause?: unknown): Error {
    const waitMs = this.#retryAt - this.#clock.now()
    return serverUnavailable(this.#options.name, { reason: this.#reason, waitMs, cause })
  }
}

const NO_ANSWER = 'The response ended before the answer.'

/** Sends a request and waits for its answer, or until the connection is lost. */
async function answerOf<T>(
  { client, requests }: Connection,
  { isCall, send }: { readonly isCall: boolean; readonly send: (one: OpenedClient) => Promise<T> },
): Promise<T> {
  let fail!: RunningRequest['fail']
  const loss = new Promise<never>((_, reject) => (fail = reject))
  const request: RunningRequest = { isCall, fail, isResuming: false }
  requests.add(request)
  try {
    return await Promise.race([send(client), loss])
  } finally {
    requests.delete(request)
  }
}

function runningCall({ requests }: Connection): RunningRequest | undefined {
  return [...requests].find(({ isCall }) => isCall)
}

function isRepeatable({ annotations }: McpTool): boolean {
  return annotations?.['readOnlyHint'] === true || annotations?.['idempotentHint'] === true
}

function nameOf({ name }: McpTool): string {
  return name
}

function sentence(text: string): string {
  return /[.!?…]$/.test(text) ? text : `${text}.`
}
