import { llm, type LLMInstance, type ProviderConfig, type Tool } from '@skein/ai'
import { openaiCompatible } from '@skein/ai/openai-compatible'
import type { Client } from './client.ts'
import { parameters } from './raw.ts'

/** As our README shows it. */
export async function skeinClient(
  baseUrl: string,
  config: ProviderConfig = { apiKey: 'sk-test' },
): Promise<Client> {
  const mock = openaiCompatible({ name: 'mock', baseUrl })
  const models = new Map<string, LLMInstance>()
  const modelOf = (name: string): LLMInstance => {
    let model = models.get(name)
    if (!model) models.set(name, (model = llm({ model: mock(name), config })))
    return model
  }
  const ask = 'Hello there, how are you?'
  return {
    call: async () => (await modelOf('whole').generate(ask)).response.text,
    async stream(model, onToken) {
      for await (const event of modelOf(model).stream(ask))
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
