/**
 * A vendor in a process of its own. It answers from bytes made beforehand, so that it is never what a
 * contender waits for. The path says in which format (see formats.ts), the model id what to play:
 *
 *     whole            one answer, of Chat Completions
 *     tokens-<n>       a stream of n tokens, as fast as it can
 *     paced-<n>-<ms>   a stream of n tokens, one each ms milliseconds
 *     tools-<n>        a tool call until the history holds n results, then an answer (Chat Completions)
 */
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type FormatName, formats } from './formats.ts'

const head = { id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: 'mock' }
const usage = { prompt_tokens: 10, completion_tokens: 10, total_tokens: 20 }

const streams = new Map<string, Buffer>()
function streamOf(name: FormatName, tokens: number): Buffer {
  const key = `${name} ${tokens}`
  let bytes = streams.get(key)
  if (!bytes) {
    const { first, token, last } = formats[name]
    const frames = Array.from({ length: tokens }, (_, index) => token(index))
    bytes = Buffer.from(first + frames.join('') + last(tokens))
    streams.set(key, bytes)
  }
  return bytes
}

function whole(message: object, finish: string): string {
  const choices = [{ index: 0, message, logprobs: null, finish_reason: finish }]
  return JSON.stringify({ ...head, object: 'chat.completion', choices, usage })
}

const text = 'The quick brown fox jumps over the lazy dog. '.repeat(5)
const answer = whole({ role: 'assistant', content: text, refusal: null }, 'stop')

function toolCall(id: number): string {
  const call = {
    id: `call_${id}`,
    type: 'function',
    function: { name: 'look_up', arguments: JSON.stringify({ id, query: 'thread' }) },
  }
  return whole({ role: 'assistant', content: null, tool_calls: [call] }, 'tool_calls')
}

/** Pieces as a network would bring them. */
const PIECE = 16 * 1024

function sendStream(response: ServerResponse, name: FormatName, tokens: number): void {
  const bytes = streamOf(name, tokens)
  response.writeHead(200, { 'content-type': formats[name].contentType })
  let at = 0
  const more = (): void => {
    while (at < bytes.length) {
      const piece = bytes.subarray(at, (at += PIECE))
      if (!response.write(piece)) return void response.once('drain', more)
    }
    response.end()
  }
  more()
}

function sendPaced(response: ServerResponse, name: FormatName, tokens: number, ms: number): void {
  const { contentType, first, token, last } = formats[name]
  response.writeHead(200, { 'content-type': contentType })
  response.write(first)
  let sent = 0
  const timer = setInterval(() => {
    response.write(token(sent++))
    if (sent < tokens) return
    clearInterval(timer)
    response.end(last(tokens))
  }, ms)
  response.on('close', () => clearInterval(timer))
}

function countResults(body: string): number {
  let count = 0
  for (let at = body.indexOf('"role":"tool"'); at >= 0; at = body.indexOf('"role":"tool"', at + 1))
    count++
  return count
}

function sendJson(response: ServerResponse, body: string): void {
  response.writeHead(200, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
  })
  response.end(body)
}

function formatOf(url: string): FormatName {
  if (url.endsWith('/responses')) return 'responses'
  if (url.endsWith('/messages')) return 'messages'
  if (url.includes('/models/')) return 'gemini'
  return url.endsWith('/api/chat') ? 'ollama' : 'chat'
}

const server = createServer((request, response) => {
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', () => {
    const body = Buffer.concat(chunks).toString('latin1')
    const url = request.url ?? ''
    const model = (/"model":"([^"]+)"/.exec(body) ?? /models\/([^:]+)/.exec(url))?.[1] ?? ''
    const name = formatOf(url)
    const [kind, first = '', second = ''] = model.split('-')
    if (kind === 'tokens') sendStream(response, name, Number(first))
    else if (kind === 'paced') sendPaced(response, name, Number(first), Number(second))
    else if (kind === 'tools') {
      const done = countResults(body)
      sendJson(response, done < Number(first) ? toolCall(done) : answer)
    } else sendJson(response, answer)
  })
})
server.keepAliveTimeout = 60_000
// A contender that is gone, or that failed before it could listen, is no failure of the vendor.
process.on('disconnect', () => process.exit(0))
server.listen(0, '127.0.0.1', () =>
  process.send?.((server.address() as AddressInfo).port, undefined, undefined, () => {}),
)
