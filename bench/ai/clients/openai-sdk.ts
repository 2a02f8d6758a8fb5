import type OpenAI from 'openai'
import { peer } from '../../runner/peers.ts'
import type { Client } from './client.ts'
import { tools } from './raw.ts'

export async function openaiClient(baseUrl: string): Promise<Client> {
  const { default: SDK } = await peer<{ default: typeof OpenAI }>('openai')
  const { completions } = new SDK({ apiKey: 'sk-test', baseURL: baseUrl }).chat
  const ask = { role: 'user' as const, content: 'Hello there, how are you?' }
  return {
    async call() {
      const answer = await completions.create({ model: 'whole', messages: [ask] })
      return answer.choices[0]?.message.content ?? ''
    },
    async stream(model, onToken) {
      const stream = await completions.create({ model, messages: [ask], stream: true })
      for await (const { choices } of stream) {
        const content = choices[0]?.delta.content
        if (content) onToken(content)
      }
    },
    async runTools(model, lookUp) {
      const messages: OpenAI.ChatCompletionMessageParam[] = [ask]
      for (;;) {
        const answer = await completions.create({
          model,
          messages,
          tools: tools as OpenAI.ChatCompletionTool[],
        })
        const message = answer.choices[0]!.message
        messages.push(message)
        if (!message.tool_calls) return message.content ?? ''
        for (const call of message.tool_calls) {
          if (call.type !== 'function') continue
          const { id } = JSON.parse(call.function.arguments) as { id: number }
          const content = JSON.stringify(lookUp(id))
          messages.push({ role: 'tool', tool_call_id: call.id, content })
        }
      }
    },
  }
}
