import { randomUUID } from 'node:crypto'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { comparableBody, type Effect } from './effect.ts'
import { forward, type ForwardedRequest } from './forward.ts'
import type { ModelAnswers } from './model-answers.ts'
import { isModelHost } from './model-hosts.ts'
import { STEP_HEADER, TARGET_HEADER, TOKEN_HEADER } from './preload/protocol.ts'
import { fitsRequest, isThisMachine } from './preload/request-pattern.ts'
import { Turns } from './turns.ts'
import type { World } from './world.ts'

/** How requests are judged. The same for all crash points. */
export interface RecorderRules {
  /** Patterns of requests that are neither steps nor effects. */
  readonly ignored: readonly string[]
  readonly allowedHosts: readonly string[]
  readonly modelHosts: readonly string[]
  /** Names of headers, in lower case. */
  readonly idempotencyHeaders: readonly string[]
  /** Fields of JSON bodies that are not compared. */
  readonly ignoredFields: readonly string[]
}

/** What the recorder of one crash point works with. */
export interface RecorderOptions {
  readonly rules: RecorderRules
  readonly world: World
  /** The numbers of the requests of the current start before one. */
  readonly earlierRequests: (number: number) => readonly number[]
}

/** One start of the program. */
export interface RecordedStart {
  readonly models: ModelAnswers | undefined
  /** The request after whose answer the program dies. */
  readonly crashAfter?: number
  /** Kills the program. */
  readonly kill: () => void
}

/** How long the answer before a crash may take, in ms. A stream may continue forever. */
const DRAIN_MS = 1000

const READING = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE'])

/**
 * The server to which all requests of a program go. It answers those to models, passes the others to the world or to a
 * server of this machine, and notes what changes the world. Nothing else leaves.
 */
export class Recorder {
  readonly token: string = randomUUID()
  readonly effects: Effect[] = []
  /** Requests that were refused, because nothing answers them on this machine. */
  readonly refused: Set<string> = new Set()
  /** Requests to models that nothing answers. */
  readonly unanswered: Set<string> = new Set()
  /** The first error that the world threw. */
  worldError: unknown
  readonly #options: RecorderOptions
  readonly #server: http.Server
  #start: RecordedStart | undefined
  #turns: Turns
  #isDead = false
  #openRequests = 0
  #lastActivity = performance.now()

  constructor(options: RecorderOptions) {
    this.#options = options
    this.#turns = new Turns(options.earlierRequests)
    this.#server = http.createServer(
      { keepAliveTimeout: 0, requestTimeout: 0 },
      (request, response) => {
        void this.#serve(request, response)
      },
    )
  }

  async listen(): Promise<string> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject)
      this.#server.listen(0, '127.0.0.1', resolve)
    })
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  /** Begins another start of the program; requests of the former one are dropped. */
  begin(start: RecordedStart): void {
    this.#server.closeAllConnections()
    this.#start = start
    this.#isDead = false
    this.#turns = new Turns(this.#options.earlierRequests)
    this.#lastActivity = performance.now()
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  /** How long no request has been in progress, in ms. */
  get quietMs(): number {
    return this.#openRequests > 0 ? 0 : performance.now() - this.#lastActivity
  }

  async #serve(request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
    const start = this.#start
    const {
      [TARGET_HEADER]: url,
      [TOKEN_HEADER]: token,
      [STEP_HEADER]: step,
      ...headers
    } = request.headers
    if (start === undefined || token !== this.token || typeof url !== 'string') {
      response.writeHead(403).end('This server is a part of skein crashtest.')
      return
    }
    const number = step === undefined ? undefined : Number(step)
    const left = new AbortController()
    const turns = this.#turns
    this.#openRequests += 1
    response.once('close', () => {
      left.abort()
      this.#openRequests -= 1
      this.#lastActivity = performance.now()
      if (number !== undefined) turns.end(number)
    })
    try {
      const body = await buffer(request)
      if (number !== undefined) await turns.wait(number)
      if (left.signal.aborted || this.#isDead || this.#start !== start) return
      const method = request.method ?? 'GET'
      const answer = await this.#answer({ method, url, headers, body }, start, left.signal)
      if (number !== undefined && number === start.crashAfter) {
        await Promise.race([drain(answer.body), sleep(DRAIN_MS)])
        this.#note({ method, url, headers, body }, answer)
        this.#isDead = true // requests that wait for their turn are not sent any more
        start.kill()
        return
      }
      if (number !== undefined) this.#note({ method, url, headers, body }, answer)
      response.writeHead(answer.status, answer.headers)
      response.flushHeaders()
      for await (const chunk of answer.body) response.write(chunk)
      response.end()
    } catch {
      request.socket.destroy() // the program sees a broken connection, as it would without the recorder
    }
  }

  async #answer(
    request: ForwardedRequest,
    { models }: RecordedStart,
    signal: AbortSignal,
  ): Promise<Answer> {
    const { method, url, headers, body } = request
    const { rules } = this.#options
    const { host, hostname } = new URL(url)
    const isReachable = isThisMachine(hostname) || rules.allowedHosts.includes(hostname)
    const isIgnored = rules.ignored.some((pattern) => fitsRequest(pattern, request))
    if (isIgnored && !isReachable) return text(204, '')
    const init: RequestInit = {
      method,
      headers: fetchHeaders(headers),
      body: body.length > 0 ? new Uint8Array(body) : undefined,
      signal,
    }
    if (isModelHost(host, rules.modelHosts)) {
      if (models) return fromResponse(await models(url, init))
      this.unanswered.add(`${method} ${url}`)
      return text(400, 'skein crashtest: nothing answers models.') // a status that clients do not retry
    }
    const response = await this.#askWorld(new Request(url, init))
    if (response) return fromResponse(response)
    if (isReachable) return fromMessage(await forward(request, signal))
    this.refused.add(`${method} ${url}`)
    return text(403, `skein crashtest: nothing on this machine answers ${method} ${url}.`)
  }

  async #askWorld(request: Request): Promise<Response | undefined> {
    try {
      return await this.#options.world(request)
    } catch (error) {
      this.worldError ??= error
      return new Response('skein crashtest: the world failed.', { status: 500 })
    }
  }

  /** Notes a request that was answered, if it changed the world. */
  #note({ method, url, headers, body }: ForwardedRequest, { status }: Answer): void {
    const { rules } = this.#options
    const isRead =
      READING.has(method.toUpperCase()) || isModelHost(new URL(url).host, rules.modelHosts)
    if (isRead || status >= 400) return
    const key = rules.idempotencyHeaders
      .map((name) => headers[name])
      .find((one) => one !== undefined)
    this.effects.push({
      action: `${method.toUpperCase()} ${url}`,
      body: comparableBody(body.toString('utf8'), rules.ignoredFields),
      idempotencyKey: key === undefined ? undefined : String(key),
    })
  }
}

interface Answer {
  readonly status: number
  readonly headers: http.OutgoingHttpHeaders
  readonly body: AsyncIterable<Uint8Array>
}

function text(status: number, content: string): Answer {
  const headers = { 'content-type': 'text/plain' }
  return { status, headers, body: Readable.from(content === '' ? [] : [Buffer.from(content)]) }
}

function fromResponse(response: Response): Answer {
  const headers = Object.fromEntries(response.headers)
  const cookies = response.headers.getSetCookie()
  return {
    status: response.status,
    headers: { ...headers, ...(cookies.length > 0 && { 'set-cookie': cookies }) },
    body: response.body ?? Readable.from([]),
  }
}

function fromMessage(message: http.IncomingMessage): Answer {
  const { connection: _, 'transfer-encoding': __, 'keep-alive': ___, ...headers } = message.headers
  return { status: message.statusCode ?? 502, headers, body: message }
}

function fetchHeaders(headers: http.IncomingHttpHeaders): Headers {
  const all = new Headers()
  for (const [name, value] of Object.entries(headers)) {
    if (name === 'host' || name === 'connection' || value === undefined) continue
    for (const one of Array.isArray(value) ? value : [value]) all.append(name, one)
  }
  return all
}

async function drain(body: AsyncIterable<Uint8Array>): Promise<void> {
  for await (const _ of body);
}
