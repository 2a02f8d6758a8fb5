import { createServer, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

interface Asked {
  readonly model: string
  readonly stream?: boolean
  readonly messages: readonly { readonly role: string; readonly content?: unknown }[]
}

type Delta = { readonly content: string } | { readonly tool_calls: readonly object[] }

interface Answer {
  readonly deltas: readonly Delta[]
  /** The pause between two deltas. */
  readonly paceMs: number
}

let answers = 0

/**
 * A vendor of Chat Completions for the soak. It does what the last word of a person asks for and remembers
 * nothing: `pay`, `work`, `note` are calls; `long` is a megabyte; `paced` takes a second.
 */
export async function startVendor(): Promise<{
  readonly url: string
  readonly close: () => void
}> {
  const server: Server = createServer((request, response) => {
    let body = ''
    request.setEncoding('utf8').on('data', (text: string) => (body += text))
    request.on('end', () => void send(response, JSON.parse(body) as Asked)) // our own server asks
  })
  server.keepAliveTimeout = 60_000
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}/v1`,
    close: () => {
      server.close()
      server.closeAllConnections()
    },
  }
}

function answerTo({ model, messages }: Asked): Answer {
  const last = messages.at(-1)
  if (model === 'worker') return call('finish', { text: 'The work is done.' })
  if (model === 'reviewer') return says('Continue.')
  if (last?.role === 'tool') return says('That is done.')
  const text = JSON.stringify(last?.content ?? '')
  if (text.includes('pay')) return call('pay', { amount: 5 })
  if (text.includes('work')) return call('worker', { task: 'dig' })
  if (text.includes('note')) return call('note', { text: 'milk' })
  if (text.includes('long')) return says('x'.repeat(999), 1000)
  if (text.includes('paced')) return { ...says('word', 40), paceMs: 25 }
  return says('some', 12)
}

function says(word: string, count = 1): Answer {
  return {
    deltas: Array.from({ length: count }, (_, i) => ({ content: i ? ` ${word}` : word })),
    paceMs: 0,
  }
}

function call(name: string, args: object): Answer {
  const called = { name, arguments: JSON.stringify(args) }
  const one = { index: 0, id: `call_${++answers}`, type: 'function', function: called }
  return { deltas: [{ tool_calls: [one] }], paceMs: 0 }
}

async function send(response: ServerResponse, asked: Asked): Promise<void> {
  const { deltas, paceMs } = answerTo(asked)
  const head = { id: `chatcmpl-${++answers}`, created: 1, model: 'soak' }
  const finish = 'tool_calls' in deltas[0]! ? 'tool_calls' : 'stop'
  const usage = { prompt_tokens: 10, completion_tokens: deltas.length, total_tokens: 20 }
  if (!asked.stream) {
    const content = deltas.map((delta) => ('content' in delta ? delta.content : '')).join('')
    const calls = deltas.flatMap((delta) => ('tool_calls' in delta ? delta.tool_calls : []))
    const message = { role: 'assistant', content, ...(calls.length > 0 && { tool_calls: calls }) }
    const choices = [{ index: 0, message, finish_reason: finish }]
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ ...head, object: 'chat.completion', choices, usage }))
    return
  }
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  const frame = (choices: readonly object[], more: object = {}): string =>
    `data: ${JSON.stringify({ ...head, object: 'chat.completion.chunk', choices, ...more })}\n\n`
  for (const delta of deltas) {
    if (response.destroyed) return
    response.write(frame([{ index: 0, delta, finish_reason: null }]))
    if (paceMs > 0) await new Promise((resolve) => setTimeout(resolve, paceMs))
  }
  response.end(
    `${frame([{ index: 0, delta: {}, finish_reason: finish }])}${frame([], { usage })}data: [DONE]\n\n`,
  )
}
