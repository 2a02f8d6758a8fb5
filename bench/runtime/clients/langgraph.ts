import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { peer, peersFolder } from '../../runner/peers.ts'
import { instructions, parameters, type Client, type ClientOptions } from './client.ts'

interface Graph {
  invoke(
    input: { messages: readonly object[] },
    options: { configurable: { thread_id: string } },
  ): Promise<{ messages: readonly { readonly content: string }[] }>
}

interface Prebuilt {
  createReactAgent(options: {
    llm: object
    tools: readonly unknown[]
    prompt: string
    checkpointer: object
  }): Graph
}

interface Tools {
  tool(
    run: (args: { id: number }) => Promise<string>,
    options: { name: string; description: string; schema: object },
  ): unknown
}

/** With its checkpoints in SQLite. */
export async function langgraphClient(options: ClientOptions): Promise<Client> {
  const { baseUrl, folder, lookUp } = options
  const { ChatOpenAI } = await peer<{ ChatOpenAI: new (options: object) => object }>(
    '@langchain/openai',
  )
  const { createReactAgent } = await peer<Prebuilt>('@langchain/langgraph/prebuilt')
  const { SqliteSaver } = await peer<{ SqliteSaver: { fromConnString(path: string): object } }>(
    '@langchain/langgraph-checkpoint-sqlite',
  )
  const { tool } = await peer<Tools>('@langchain/core/tools')
  const open = (): object => SqliteSaver.fromConnString(join(folder, 'checkpoints.db'))
  const graph = createReactAgent({
    llm: new ChatOpenAI({ model: 'turn', apiKey: 'sk-test', configuration: { baseURL: baseUrl } }),
    tools: [
      tool(async ({ id }) => JSON.stringify(lookUp(id)), {
        name: 'look_up',
        description: 'Looks up.',
        schema: parameters,
      }),
    ],
    prompt: instructions,
    checkpointer: opened(open),
  })
  return {
    async turn(thread, message) {
      const { messages } = await graph.invoke(
        { messages: [{ role: 'user', content: message }] },
        { configurable: { thread_id: thread } },
      )
      return messages.at(-1)?.content ?? ''
    },
  }
}

/** Its driver has native code, and peers are installed without running their scripts. */
function opened(open: () => object): object {
  try {
    return open()
  } catch {
    execFileSync('npm', ['rebuild', 'better-sqlite3'], { cwd: peersFolder(), stdio: 'ignore' })
    return open()
  }
}
