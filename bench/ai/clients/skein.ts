import {
  llm,
  type LLMInstance,
  type ModelReference,
  type ProviderConfig,
  type Tool,
} from '@skein/ai'
import { anthropic } from '@skein/ai/anthropic'
import { google } from '@skein/ai/google'
import { ollama } from '@skein/ai/ollama'
import { openai } from '@skein/ai/openai'
import { openaiCompatible } from '@skein/ai/openai-compatible'
import type { FormatName } from '../mock/formats.ts'
import type { Client } from './client.ts'
import { parameters } from './raw.ts'

/** As our README shows it. */
export async function skeinClient(
  baseUrl: string,
  config: ProviderConfig = { apiKey: 'sk-test' },
): Promise<Client> {
  const mock = openaiCompatible({ name: 'mock', baseUrl })
  const vendors: Readonly<Record<FormatName, (model: string) => ModelReference>> = {
    chat: mock,
    responses: openai,
    messages: anthropic,
    gemini: google,
    ollama,
  }
  const models = new Map<string, LLMInstance>()
  const modelOf = (name: string, format: FormatName = 'chat'): LLMInstance => {
    const key = `${format} ${name}`
    let model = models.get(key)
    if (!model) {
      const url = format === 'ollama' ? baseUrl.replace('/v1', '/api') : baseUrl
      model = llm({ model: vendors[format](name), config: { ...config, baseUrl: url } })
      models.set(key, model)
    }
    return model
  }
  const ask = 'Hello there, how are you?'
  return {
    call: async () => (await modelOf('whole').generate(ask)).response.text,
    async stream(model, onToken, format) {
      for await (const event of modelOf(model, format).stream(ask))
        if (event.type === 'text_delta') onToken(event.delta.text)
    },
    async runTools(model, lookUp) {
      const tool: Tool = {
        name: 'look_up',
        description: 'Looks up.',
        parameters,
        run: ({ id }: { id: number }) => lookUp(id),
      }
      const agent = llm({
        model: mock(model),
        config,
        tools: [tool],
        toolStrategy: { maxIterations: 10_000 },
      })
      return (await agent.generate(ask)).response.text
    },
  }
}

/** With the platform's `fetch` given as one's own. */
export async function skeinFetchClient(baseUrl: string): Promise<Client> {
  return skeinClient(baseUrl, {
    apiKey: 'sk-test',
    fetch: (input, init) => globalThis.fetch(input, init),
  })
}
