import { agent, AgentState, type AgentOptions } from '@skein/agents'
import { memoryCheckpoints } from '@skein/agents/checkpoint'
import { openaiCompatible } from '@skein/ai/openai-compatible'
import { parameters, prompt, toolNames, type RunAgent } from './runner.ts'

/** As our README shows it. */
export async function skeinRunner(
  baseUrl: string,
  options: () => Partial<AgentOptions> = () => ({}),
): Promise<RunAgent> {
  const mock = openaiCompatible({ name: 'mock', baseUrl })
  return async ({ model, toolCount, lookUp }) => {
    const tools = toolNames(toolCount).map((name) => ({
      name,
      description: 'Looks up.',
      parameters,
      run: ({ id }: { id: number }) => lookUp(id),
    }))
    const worker = agent({ model: mock(model), config: { apiKey: 'sk-test' }, tools, ...options() })
    const { turn } = await worker.generate(prompt, AgentState.initial())
    await worker.flush()
    return turn.response.text
  }
}

/** With a checkpoint after every step. */
export async function skeinSavingRunner(baseUrl: string): Promise<RunAgent> {
  return skeinRunner(baseUrl, () => ({ checkpoints: memoryCheckpoints() }))
}
