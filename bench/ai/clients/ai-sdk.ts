import type * as AI from 'ai'
import { peer } from '../../runner/peers.ts'
import type { Client } from './client.ts'
import { parameters } from './raw.ts'

interface Compatible {
  createOpenAICompatible(options: {
    name: string
    baseURL: string
    apiKey: string
  }): (model: string) => AI.LanguageModel
}

export async function aiSdkClient(baseUrl: string): Promise<Client> {
  const ai = await peer<typeof AI>('ai')
  const { createOpenAICompatible } = await peer<Compatible>('@ai-sdk/openai-compatible')
  const mock = createOpenAICompatible({ name: 'mock', baseURL: baseUrl, apiKey: 'sk-test' })
  const prompt = 'Hello there, how are you?'
  return {
    call: async () => (await ai.generateText({ model: mock('whole'), prompt })).text,
    async stream(model, onToken) {
      for await (const text of ai.streamText({ model: mock(model), prompt }).textStream)
        onToken(text)
    },
    async runTools(model, lookUp) {
      const { text } = await ai.generateText({
        model: mock(model),
        prompt,
        stopWhen: ai.stepCountIs(10_000),
        tools: {
          look_up: {
            description: 'Looks up.',
            inputSchema: ai.jsonSchema<{ id: number; query: string }>(parameters as never),
            execute: async ({ id }: { id: number }) => lookUp(id),
          },
        },
      })
      return text
    },
  }
}
