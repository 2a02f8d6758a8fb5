import type { FormatName } from '../mock/formats.ts'
import type { Client } from './client.ts'

interface Call {
  readonly id: string
  readonly function: { readonly name: string; readonly arguments: string }
}

interface Answer {
  readonly choices: readonly [
    { readonly message: { readonly content: string; readonly tool_calls?: readonly Call[] } },
  ]
}

/** What one writes by hand for a stream of one format. */
export interface RawFormat {
  readonly path: (model: string) => string
  readonly body: (model: string) => object
  readonly textOf: (frame: any) => string | undefined
  /** The characters between two frames, and those before the JSON of a frame. */
  readonly between: string
  readonly before: string
}

const ask = [{ role: 'user', content: 'Hello there, how are you?' }]
const events = { between: '\n\n', before: 'data: ' }
const chat: RawFormat = {
  path: () => '/v1/chat/completions',
  body: (model) => ({ model, messages: ask, stream: true }),
  textOf: ({ choices }) => choices[0]?.delta?.content,
  ...events,
}

export const rawFormats: Readonly<Record<FormatName, RawFormat>> = {
  chat,
  responses: {
    path: () => '/v1/responses',
    body: (model) => ({ model, input: ask, stream: true }),
    textOf: ({ type, delta }) => (type === 'response.output_text.delta' ? delta : undefined),
    ...events,
  },
  messages: {
    path: () => '/v1/messages',
    body: (model) => ({ model, messages: ask, stream: true, max_tokens: 8192 }),
    textOf: ({ type, delta }) => (type === 'content_block_delta' ? delta.text : undefined),
    ...events,
  },
  gemini: {
    path: (model) => `/v1/models/${model}:streamGenerateContent?alt=sse`,
    body: () => ({ contents: [{ role: 'user', parts: [{ text: ask[0]!.content }] }] }),
    textOf: ({ candidates }) => candidates[0]?.content.parts[0]?.text,
    between: '\r\n\r\n',
    before: 'data: ',
  },
  ollama: {
    path: () => '/api/chat',
    body: (model) => ({ model, messages: ask, stream: true }),
    textOf: ({ message }) => message.content,
    between: '\n',
    before: '',
  },
}

/** What one writes by hand: `fetch`, a split at blank lines, `JSON.parse`. */
export async function rawClient(baseUrl: string): Promise<Client> {
  const origin = new URL(baseUrl).origin
  const post = (body: object, path = '/v1/chat/completions'): Promise<Response> =>
    fetch(origin + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: 'Bearer sk-test' },
      body: JSON.stringify(body),
    })
  return {
    async call() {
      const response = await post({ model: 'whole', messages: ask })
      return ((await response.json()) as Answer).choices[0].message.content
    },
    async stream(model, onToken, format = 'chat') {
      const { path, body, textOf, between, before } = rawFormats[format]
      const response = await post(body(model), path(model))
      const decoder = new TextDecoder()
      let rest = ''
      for await (const bytes of response.body!) {
        const frames = (rest + decoder.decode(bytes, { stream: true })).split(between)
        rest = frames.pop() ?? ''
        for (const frame of frames) {
          const at = frame.indexOf(before)
          if (at < 0 || frame.endsWith('[DONE]')) continue
          const text = textOf(JSON.parse(frame.slice(at + before.length)))
          if (text) onToken(text)
        }
      }
    },
    async runTools(model, lookUp) {
      const messages: object[] = [...ask]
      for (;;) {
        const response = await post({ model, messages, tools })
        const { message } = ((await response.json()) as Answer).choices[0]
        messages.push(message)
        if (!message.tool_calls) return message.content
        for (const { id, function: called } of message.tool_calls) {
          const { id: wanted } = JSON.parse(called.arguments) as { id: number }
          const content = JSON.stringify(lookUp(wanted))
          messages.push({ role: 'tool', tool_call_id: id, content })
        }
      }
    },
  }
}

export const parameters = {
  type: 'object',
  properties: { id: { type: 'number' }, query: { type: 'string' } },
  required: ['id', 'query'],
} as const

export const tools: readonly object[] = [
  { type: 'function', function: { name: 'look_up', description: 'Looks up.', parameters } },
]
