import type OpenAI from 'openai'
import { peer } from '../../runner/peers.ts'
import { parameters, prompt, toolNames, type RunAgent } from './runner.ts'

interface Agents {
  readonly Agent: new (options: {
    name: string
    model: unknown
    tools: readonly unknown[]
  }) => object
  readonly OpenAIChatCompletionsModel: new (client: OpenAI, model: string) => object
  run(
    agent: object,
    input: string,
    options: { maxTurns: number },
  ): Promise<{ finalOutput?: string }>
  setTracingDisabled(disabled: boolean): void
  tool(options: {
    name: string
    description: string
    parameters: object
    strict: false
    execute: (args: unknown) => Promise<unknown>
  }): unknown
}

export async function openaiAgentsRunner(baseUrl: string): Promise<RunAgent> {
  const { Agent, OpenAIChatCompletionsModel, run, setTracingDisabled, tool } =
    await peer<Agents>('@openai/agents')
  const { default: SDK } = await peer<{ default: typeof OpenAI }>('openai')
  setTracingDisabled(true)
  const client = new SDK({ apiKey: 'sk-test', baseURL: baseUrl })
  return async ({ model, toolCount, lookUp }) => {
    const tools = toolNames(toolCount).map((name) =>
      tool({
        name,
        description: 'Looks up.',
        parameters: { ...parameters, additionalProperties: true },
        strict: false,
        execute: async (args) => lookUp((args as { id: number }).id),
      }),
    )
    const worker = new Agent({
      name: 'worker',
      model: new OpenAIChatCompletionsModel(client, model),
      tools,
    })
    return (await run(worker, prompt, { maxTurns: 100_000 })).finalOutput ?? ''
  }
}
