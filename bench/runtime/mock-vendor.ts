/**
 * A vendor of Chat Completions in a process of its own, for threads. It answers whole or streamed, as it is
 * asked to. The model id says what to play:
 *
 *     turn             a call of `look_up` after a person's message, then an answer
 *     says             an answer
 *     tokens-<n>       an answer of n tokens, as fast as it can
 *     paced-<n>-<ms>   an answer of n tokens, one each ms milliseconds
 */
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

const usage = { prompt_tokens: 10, completion_tokens: 10, total_tokens: 20 }
let answers = 0

/** Ids differ, because some know messages by them. */
function head(): { id: string; created: number; model: string } {
  return { id: `chatcmpl-${++answers}`, created: 1, model: 'mock' }
}

interface Message {
  readonly content: string | null
  readonly tool_calls?: readonly object[]
}

function sendWhole(response: ServerResponse, message: Message): void {
  const finish_reason = message.tool_calls ? 'tool_calls' : 'stop'
  const told = { role: 'assistant', refusal: null, ...message }
  const choices = [{ index: 0, message: told, logprobs: null, finish_reason }]
  const body = JSON.stringify({ ...head(), object: 'chat.completion', choices, usage })
  const length = Buffer.byteLength(body)
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': length })
  response.end(body)
}

/** Frames of one answer: the pieces of its text, or its calls in one piece. */
function frames(pieces: readonly object[], finish: string): string[] {
  const same = { ...head(), object: 'chat.completion.chunk' }
  const frame = (delta: object, finish_reason: string | null = null): string =>
    `data: ${JSON.stringify({ ...same, choices: [{ index: 0, delta, logprobs: null, finish_reason }] })}\n\n`
  const last = `data: ${JSON.stringify({ ...same, choices: [], usage })}\n\ndata: [DONE]\n\n`
  const first = frame({ role: 'assistant', content: '' })
  return [first, ...pieces.map((piece) => frame(piece)), frame({}, finish) + last]
}

function streamOf({ content, tool_calls }: Message): string[] {
  if (!tool_calls) return frames([{ content }], 'stop')
  const calls = tool_calls.map((call, index) => ({ index, ...call }))
  return frames([{ tool_calls: calls }], 'tool_calls')
}

/** Every hundredth word is not ASCII, as in real answers. */
const word = (index: number): object => ({
  content: index % 100 === 99 ? ' Fäden' : ` word${index % 10}`,
})

const wordsOf = (count: number): string[] =>
  frames(
    Array.from({ length: count }, (_, index) => word(index)),
    'stop',
  )

function sendPaced(response: ServerResponse, parts: readonly string[], ms: number): void {
  let sent = 0
  const timer = setInterval(() => {
    response.write(parts[sent++])
    if (sent < parts.length) return
    clearInterval(timer)
    response.end()
  }, ms)
  response.on('close', () => clearInterval(timer))
}

function answerTo(body: { messages: readonly { role: string }[]; model: string }): Message {
  if (body.model !== 'turn' || body.messages.at(-1)?.role === 'tool')
    return { content: 'The thread is long and red, as far as anybody knows.' }
  const called = { name: 'look_up', arguments: '{"id":7,"query":"thread"}' }
  return {
    content: null,
    tool_calls: [{ id: `call_${answers}`, type: 'function', function: called }],
  }
}

const server = createServer((request, response) => {
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', () => {
    const body = JSON.parse(Buffer.concat(chunks).toString()) as {
      model: string
      stream?: boolean
      messages: readonly { role: string }[]
    }
    const [kind, first, second] = body.model.split('-')
    if (!body.stream) return sendWhole(response, answerTo(body))
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    if (kind === 'paced') sendPaced(response, wordsOf(Number(first)), Number(second))
    else
      response.end((kind === 'tokens' ? wordsOf(Number(first)) : streamOf(answerTo(body))).join(''))
  })
})
server.keepAliveTimeout = 60_000
// A contender that is gone, or that failed before it could listen, is no failure of the vendor.
process.on('disconnect', () => process.exit(0))
server.listen(0, '127.0.0.1', () =>
  process.send?.((server.address() as AddressInfo).port, undefined, undefined, () => {}),
)
