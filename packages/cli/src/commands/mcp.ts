import { isPlainObject, SseDecoder, tryParseJson, type JsonObject } from '@skein/base'
import { type ServerConnection, withConnection } from '../connect/connect.ts'
import {
  CommandError,
  defineCommand,
  ExitCode,
  FOLDER_OPERAND,
  SERVER_OPTIONS,
  usageError,
  type Command,
} from '../terminal/command.ts'
import { byteLines, TOO_LONG } from '../terminal/byte-lines.ts'
import { errorText } from '../terminal/format.ts'
import type { Output } from '../terminal/output.ts'

/** `skein mcp` */
export const mcp: Command = defineCommand({
  operands: [FOLDER_OPERAND],
  options: {
    agent: {
      type: 'string',
      value: 'name',
      description: 'The agent to serve. May be left out if there is only one.',
    },
    url: SERVER_OPTIONS.url,
    key: SERVER_OPTIONS.key,
  },
  examples: ['skein mcp ./my-agents --agent support', 'skein mcp --url https://agents.example'],
  async run({ values, operands: [folder], output }) {
    return withConnection(
      { ...values, folder },
      output,
      async (connection) => {
        const agent = await chooseAgent(connection, values.agent)
        const bridge = new Bridge(connection, agent, output)
        await bridge.run(process.stdin)
        return ExitCode.Done
      },
      { works: true },
    )
  },
})

async function chooseAgent({ client }: ServerConnection, named?: string): Promise<string> {
  const names = (await client.agents.list()).map(({ name }) => name)
  const agent = named ?? (names.length === 1 ? names[0] : undefined)
  if (agent !== undefined && names.includes(agent)) return agent
  const hint = `Agents: ${names.join(', ')}.`
  if (agent === undefined)
    throw usageError('There are several agents: name one with --agent.', hint)
  throw new CommandError(`There is no agent "${agent}".`, { code: 'AGENT_NOT_FOUND', hint })
}

/** The longest message that is passed on: the same as the server's default limit for a request body. */
const MAX_MESSAGE_BYTES = 1024 * 1024
/** The longest line that is read at all. A longer message than allowed is read to find the request that it belongs to. */
const MAX_LINE_BYTES = 64 * MAX_MESSAGE_BYTES
/** How long running requests may continue after the input has ended, in ms. */
const GRACE_MS = 500
const RETRY_MS = 1000
const MAX_RETRIES = 30

/**
 * Passes MCP messages between standard input and output (one JSON value per line) and the MCP address
 * of an agent on the HTTP server, so that one server serves both transports.
 */
class Bridge {
  readonly #connection: ServerConnection
  readonly #path: string
  readonly #output: Output
  readonly #ended = new AbortController()
  readonly #session: Record<string, string> = {}

  constructor(connection: ServerConnection, agent: string, output: Output) {
    this.#connection = connection
    this.#path = `/agents/${encodeURIComponent(agent)}/mcp`
    this.#output = output
  }

  /** Serves until the input ends or the program that reads the output is gone. */
  async run(input: AsyncIterable<Uint8Array>): Promise<void> {
    const { closed } = this.#output
    const work = new Set<Promise<void>>()
    for await (const line of byteLines(input, MAX_LINE_BYTES)) {
      if (closed.aborted) break
      if (line === TOO_LONG) this.#refuse(null, tooLong(MAX_LINE_BYTES))
      else if (line.trim() !== '') {
        const pass = this.#pass(line).finally(() => work.delete(pass))
        work.add(pass)
      }
    }
    // Requests that take longer are aborted, because their client is gone; their threads continue at the next start.
    const timer = setTimeout(() => this.#ended.abort(), GRACE_MS)
    await Promise.all(work)
    clearTimeout(timer)
  }

  async #pass(line: string): Promise<void> {
    const message = tryParseJson(line)
    const { id, method } = isPlainObject(message) ? (message as JsonObject) : {}
    const isRequest = method !== undefined && (typeof id === 'string' || typeof id === 'number')
    // What is no message may be a request that was cut off, so it is answered too; JSON-RPC then says null.
    const answerId = isRequest ? id : isPlainObject(message) ? undefined : null
    if (Buffer.byteLength(line) > MAX_MESSAGE_BYTES)
      return this.#refuse(answerId, tooLong(MAX_MESSAGE_BYTES))
    try {
      const body = { method: 'POST', body: line, headers: { 'content-type': 'application/json' } }
      const response = await this.#send(body)
      const session = response.headers.get('mcp-session-id')
      if (session !== null) this.#session['mcp-session-id'] = session
      if (response.headers.get('content-type')?.startsWith('text/event-stream'))
        return await this.#follow(response)
      const text = await response.text()
      if (response.ok) return text === '' ? undefined : this.#output.jsonLines(text)
      const error = tryParseJson(text)
      const detail = isPlainObject(error) ? ((error as JsonObject)['error'] ?? null) : null
      const reason = isPlainObject(detail)
        ? String(detail['message'])
        : `Status ${response.status}.`
      this.#refuse(answerId, reason)
    } catch (error) {
      if (!this.#ended.signal.aborted) this.#refuse(answerId, errorText(error))
    }
  }

  #send(init: RequestInit & { readonly headers: Record<string, string> }): Promise<Response> {
    const accept = 'application/json, text/event-stream'
    const headers = { ...init.headers, accept, ...this.#session }
    return this.#connection.send(this.#path, { ...init, headers, signal: this.#ended.signal })
  }

  /** Writes the messages of a response stream. If the stream breaks off before the response, it is resumed. */
  async #follow(first: Response): Promise<void> {
    let last = ''
    for (let tries = 0, response = first; ;) {
      const decoder = new SseDecoder()
      try {
        for await (const chunk of response.body ?? [])
          for (const { id, data } of decoder.push(chunk)) {
            last = id ?? last
            tries = 0
            if (data === '') continue
            this.#output.jsonLines(data)
            const message = tryParseJson(data)
            if (isPlainObject(message) && !('method' in message)) return // the response
          }
      } catch (error) {
        this.#ended.signal.throwIfAborted()
        if (last === '' || tries >= MAX_RETRIES) throw error
      }
      if (last === '' || tries++ >= MAX_RETRIES) throw new Error('The answer was cut off.')
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
      response = await this.#send({ method: 'GET', headers: { 'last-event-id': last } }).catch(
        () => new Response(null),
      )
    }
  }

  /** Tells the client that a request failed. If the failure belongs to no request, it is printed to standard error. */
  #refuse(id: unknown, message: string): void {
    if (id === undefined) return this.#output.say(`error: ${message}`)
    this.#output.jsonLines(JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32000, message } }))
  }
}

function tooLong(maxBytes: number): string {
  return `The message is longer than ${maxBytes} bytes.`
}
