import { usageError } from '../terminal/command.ts'

/** How long no request may be in progress until a server counts as done, in ms. */
const QUIET_MS = 300
/** How long a request to the program waits for its answer, in ms. */
const ANSWER_MS = 10_000

/** How a program that does not end by itself is used. */
export interface ServerOptions {
  /** A text in its output, or an address that answers, when it is ready. */
  readonly ready?: string
  /** A request to send when it is ready: `POST http://127.0.0.1:3000/refunds {"order":"O-7"}`. */
  readonly send?: string
  /** A text in its output when it is done. Default: the request is answered, and no request is in progress. */
  readonly until?: string
}

/** What a client of the program does around one crash point: it sends a request until it is answered, and then waits. */
export class ServerUse {
  readonly #options: ServerOptions
  readonly #request: Sent | undefined
  readonly #quietMs: () => number
  #isReady = false
  #isAnswered: boolean
  #startedAt = performance.now()

  constructor(options: ServerOptions, quietMs: () => number) {
    this.#options = options
    this.#request = options.send === undefined ? undefined : parseSent(options.send)
    this.#isAnswered = this.#request === undefined
    this.#quietMs = quietMs
  }

  /** Called when the program is started again. */
  begin(): void {
    this.#isReady = false
    this.#startedAt = performance.now()
  }

  /** Whether the program has done what was wanted of it. */
  async isOver(output: string): Promise<boolean> {
    const { ready, until } = this.#options
    this.#isReady ||= ready === undefined || (await isReady(ready, output))
    if (!this.#isReady) return false
    if (!this.#isAnswered) this.#isAnswered = await isAnswered(this.#request!)
    if (!this.#isAnswered) return false
    if (until !== undefined) return output.includes(until)
    return this.#quietMs() > QUIET_MS && performance.now() - this.#startedAt > QUIET_MS
  }
}

interface Sent {
  readonly method: string
  readonly url: string
  readonly body: string | undefined
}

/** Parses `POST http://127.0.0.1:3000/refunds {"order":"O-7"}`. */
export function parseSent(text: string): Sent {
  const [, method, url, body] = /^([A-Z]+) (https?:\/\/\S+)(?: ([^]+))?$/.exec(text.trim()) ?? []
  if (method === undefined || url === undefined)
    throw usageError(
      '--send takes a method, an address and a body.',
      'E.g. --send \'POST http://127.0.0.1:3000/refunds {"order":"O-7"}\'',
    )
  return { method, url, body }
}

async function isReady(ready: string, output: string): Promise<boolean> {
  if (!/^https?:\/\//.test(ready)) return output.includes(ready)
  return fetch(ready, { signal: AbortSignal.timeout(ANSWER_MS) }).then(
    async (response) => {
      await response.body?.cancel()
      return response.ok
    },
    () => false,
  )
}

/** False if the connection broke: the client then sends the request again, as a person would. */
async function isAnswered({ method, url, body }: Sent): Promise<boolean> {
  const headers = body === undefined ? undefined : { 'content-type': 'application/json' }
  const signal = AbortSignal.timeout(ANSWER_MS)
  return fetch(url, { method, body, headers, signal }).then(
    async (response) => {
      await response.arrayBuffer()
      return true
    },
    () => false,
  )
}
