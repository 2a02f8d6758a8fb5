import type { Client } from './client.ts'

interface Chunk {
  readonly choices: readonly { readonly delta?: { readonly content?: string } }[]
}

interface Call {
  readonly id: string
  readonly function: { readonly name: string; readonly arguments: string }
}

interface Answer {
  readonly choices: readonly [
    { readonly message: { readonly content: string; readonly tool_calls?: readonly Call[] } },
  ]
}

/** What one writes by hand: `fetch`, a split at blank lines, `JSON.parse`. */
export async function rawClient(baseUrl: string): Promise<Client> {
  const post = (body: object): Promise<Response> =>
    fetch(`${baseUrl}/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: 'Bearer sk-test' },
      body: JSON.stringify(body),
    })
  const ask = [{ role: 'user', content: 'Hello there, how are you?' }]
  return {
    async call() {
      const response = await post({ model: 'whole', messages: ask })
      return ((await response.json()) as Answer).choices[0].message.content
    },
    async stream(model, onToken) {
      const response = await post({ model, messages: ask, stream: true })
      const decoder = new TextDecoder()
      let rest = ''
      for await (const bytes of response.body!) {
        const events = (rest + decoder.decode(bytes, { stream: true })).split('\n\n')
        rest = events.pop() ?? ''
        for (const event of events) {
          if (!event.startsWith('data: ') || event === 'data: [DONE]') continue
          const { choices } = JSON.parse(event.slice(6)) as Chunk
          const content = choices[0]?.delta?.content
          if (content) onToken(content)
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
