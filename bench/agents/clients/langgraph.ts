import { peer } from '../../runner/peers.ts'
import { parameters, prompt, toolNames, type RunAgent } from './runner.ts'

interface Graph {
  invoke(
    input: { messages: readonly object[] },
    options: { recursionLimit: number; configurable?: { thread_id: string } },
  ): Promise<{ messages: readonly { readonly content: string }[] }>
}

interface Prebuilt {
  createReactAgent(options: {
    llm: object
    tools: readonly unknown[]
    checkpointer?: object
  }): Graph
}

interface Tools {
  tool(
    run: (args: { id: number }) => Promise<string>,
    options: { name: string; description: string; schema: object },
  ): unknown
}

export async function langgraphRunner(baseUrl: string, isSaving = false): Promise<RunAgent> {
  const { ChatOpenAI } = await peer<{ ChatOpenAI: new (options: object) => object }>(
    '@langchain/openai',
  )
  const { createReactAgent } = await peer<Prebuilt>('@langchain/langgraph/prebuilt')
  const { MemorySaver } = await peer<{ MemorySaver: new () => object }>('@langchain/langgraph')
  const { tool } = await peer<Tools>('@langchain/core/tools')
  return async ({ model, toolCount, lookUp }) => {
    const tools = toolNames(toolCount).map((name) =>
      tool(async ({ id }) => JSON.stringify(lookUp(id)), {
        name,
        description: 'Looks up.',
        schema: parameters,
      }),
    )
    const llm = new ChatOpenAI({ model, apiKey: 'sk-test', configuration: { baseURL: baseUrl } })
    const graph = createReactAgent({
      llm,
      tools,
      ...(isSaving && { checkpointer: new MemorySaver() }),
    })
    const { messages } = await graph.invoke(
      { messages: [{ role: 'user', content: prompt }] },
      { recursionLimit: 100_000, ...(isSaving && { configurable: { thread_id: 'run' } }) },
    )
    return messages.at(-1)?.content ?? ''
  }
}

/** With its checkpoints in memory. */
export async function langgraphSavingRunner(baseUrl: string): Promise<RunAgent> {
  return langgraphRunner(baseUrl, true)
}
