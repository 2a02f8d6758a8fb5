import { join } from 'node:path'
import { z } from 'zod'
import { peer } from '../../runner/peers.ts'
import { instructions, type Client, type ClientOptions } from './client.ts'

interface Agent {
  generate(
    message: string,
    options: { memory: { thread: string; resource: string } },
  ): Promise<{ readonly text: string }>
}

interface Compatible {
  createOpenAICompatible(options: {
    name: string
    baseURL: string
    apiKey: string
  }): (model: string) => object
}

type Made<T> = new (options: object) => T

/** With its memory in SQLite, and all messages recalled, as the others do. */
export async function mastraClient(options: ClientOptions): Promise<Client> {
  const { baseUrl, folder, lookUp } = options
  const { Agent } = await peer<{ Agent: Made<Agent> }>('@mastra/core/agent')
  const { createTool } = await peer<{ createTool(options: object): object }>('@mastra/core/tools')
  const { Memory } = await peer<{ Memory: Made<object> }>('@mastra/memory')
  const { LibSQLStore } = await peer<{ LibSQLStore: Made<object> }>('@mastra/libsql')
  const { createOpenAICompatible } = await peer<Compatible>('@ai-sdk/openai-compatible')
  const storage = new LibSQLStore({ id: 'bench', url: `file:${join(folder, 'memory.db')}` })
  const agent = new Agent({
    id: 'helper',
    name: 'helper',
    instructions,
    model: createOpenAICompatible({ name: 'mock', baseURL: baseUrl, apiKey: 'sk-test' })('turn'),
    tools: {
      look_up: createTool({
        id: 'look_up',
        description: 'Looks up.',
        inputSchema: z.object({ id: z.number(), query: z.string() }),
        execute: async ({ id }: { id: number }) => lookUp(id),
      }),
    },
    memory: new Memory({ storage, options: { lastMessages: 100_000 } }),
  })
  return {
    async turn(thread, message) {
      const { text } = await agent.generate(message, { memory: { thread, resource: 'bench' } })
      return text
    },
  }
}
