import type * as AI from 'ai'
import { peer } from '../../runner/peers.ts'
import { parameters, prompt, toolNames, type RunAgent } from './runner.ts'

interface Compatible {
  createOpenAICompatible(options: {
    name: string
    baseURL: string
    apiKey: string
  }): (model: string) => AI.LanguageModel
}

export async function aiSdkRunner(baseUrl: string): Promise<RunAgent> {
  const ai = await peer<typeof AI>('ai')
  const { createOpenAICompatible } = await peer<Compatible>('@ai-sdk/openai-compatible')
  const mock = createOpenAICompatible({ name: 'mock', baseURL: baseUrl, apiKey: 'sk-test' })
  return async ({ model, toolCount, lookUp }) => {
    const tool = {
      description: 'Looks up.',
      inputSchema: ai.jsonSchema<{ id: number; query: string }>(parameters as never),
      execute: async ({ id }: { id: number }) => lookUp(id),
    }
    const worker = new ai.ToolLoopAgent({
      model: mock(model),
      stopWhen: ai.stepCountIs(100_000),
      tools: Object.fromEntries(toolNames(toolCount).map((name) => [name, tool])),
    })
    return (await worker.generate({ prompt })).text
  }
}
