import { Agent, request, type IncomingMessage } from 'node:http'
import type { Client } from './client.ts'
import { type RawFormat, rawFormats, tools } from './raw.ts'

/** The fastest client that we could write by hand: `node:http`, kept alive, one pass per read, the history as text. */
export async function rawBestClient(baseUrl: string): Promise<Client> {
  const agent = new Agent({ keepAlive: true, maxSockets: Infinity })
  const { origin } = new URL(baseUrl)
  const chatUrl = new URL('/v1/chat/completions', origin)
  const send = (body: string, url = chatUrl): Promise<IncomingMessage> =>
    new Promise((resolve, reject) => {
      const sent = request(url, {
        agent,
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          authorization: 'Bearer sk-test',
          'content-length': Buffer.byteLength(body),
        },
      })
      sent.on('response', resolve)
      sent.on('error', reject)
      sent.end(body)
    })
  const ask = '{"role":"user","content":"Hello there, how are you?"}'
  const toolsText = JSON.stringify(tools)
  return {
    async call() {
      const text = await readAll(await send(`{"model":"whole","messages":[${ask}]}`))
      return JSON.parse(text).choices[0].message.content
    },
    async stream(model, onToken, name = 'chat') {
      const format = rawFormats[name]
      const url = name === 'chat' ? chatUrl : new URL(format.path(model), origin)
      await readTokens(await send(JSON.stringify(format.body(model)), url), format, onToken)
    },
    async runTools(model, lookUp) {
      let history = ask
      for (;;) {
        const body = `{"model":"${model}","messages":[${history}],"tools":${toolsText}}`
        const { message } = JSON.parse(await readAll(await send(body))).choices[0]
        if (!message.tool_calls) return message.content
        history += `,${JSON.stringify(message)}`
        for (const { id, function: called } of message.tool_calls) {
          const content = JSON.stringify(lookUp(JSON.parse(called.arguments).id))
          history += `,${JSON.stringify({ role: 'tool', tool_call_id: id, content })}`
        }
      }
    },
  }
}

function readAll(response: IncomingMessage): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = ''
    response.setEncoding('utf8')
    response.on('data', (chunk: string) => (text += chunk))
    response.on('end', () => resolve(text))
    response.on('error', reject)
  })
}

function readTokens(
  response: IncomingMessage,
  { textOf, between, before }: RawFormat,
  onToken: (text: string) => void,
): Promise<void> {
  return new Promise((resolve, reject) => {
    let rest = ''
    response.setEncoding('utf8')
    response.on('data', (chunk: string) => {
      const text = rest === '' ? chunk : rest + chunk
      let at = 0
      for (let end = text.indexOf(between); end >= 0; end = text.indexOf(between, at)) {
        const start = text.indexOf(before, at) + before.length
        if (text.charCodeAt(start) === 123) {
          const token = textOf(JSON.parse(text.slice(start, end)))
          if (token) onToken(token)
        }
        at = end + between.length
      }
      rest = text.slice(at)
    })
    response.on('end', resolve)
    response.on('error', reject)
  })
}
