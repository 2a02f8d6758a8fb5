import { peer } from '../../runner/peers.ts'
import type { Client } from './client.ts'
import { tools } from './raw.ts'

interface Message {
  readonly content: string
  readonly tool_calls?: readonly { readonly id: string; readonly args: { readonly id: number } }[]
}

interface Model {
  invoke(messages: unknown): Promise<Message>
  stream(messages: unknown): Promise<AsyncIterable<Message>>
  bindTools(tools: unknown): Model
}

interface LangChain {
  readonly ChatOpenAI: new (options: object) => Model
}

/** The chat model and a loop by hand; the graph on top of it would cost more. */
export async function langchainClient(baseUrl: string): Promise<Client> {
  const { ChatOpenAI } = await peer<LangChain>('@langchain/openai')
  const create = (model: string): Model =>
    new ChatOpenAI({ model, apiKey: 'sk-test', configuration: { baseURL: baseUrl } })
  const ask = { role: 'user', content: 'Hello there, how are you?' }
  const whole = create('whole')
  return {
    call: async () => (await whole.invoke([ask])).content,
    async stream(model, onToken) {
      for await (const { content } of await create(model).stream([ask]))
        if (content) onToken(content)
    },
    async runTools(model, lookUp) {
      const bound = create(model).bindTools(tools)
      const messages: unknown[] = [ask]
      for (;;) {
        const message = await bound.invoke(messages)
        messages.push(message)
        if (!message.tool_calls?.length) return message.content
        for (const { id, args } of message.tool_calls) {
          const content = JSON.stringify(lookUp(args.id))
          messages.push({ role: 'tool', tool_call_id: id, content })
        }
      }
    },
  }
}
