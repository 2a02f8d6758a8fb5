import { join } from 'node:path'
import { DatabaseSync, type SQLInputValue } from 'node:sqlite'
import { peer } from '../../runner/peers.ts'
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
  const { SqliteSaver } = await peer<{ SqliteSaver: new (driver: object) => object }>(
    '@langchain/langgraph-checkpoint-sqlite',
  )
  const { tool } = await peer<Tools>('@langchain/core/tools')
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
    checkpointer: new SqliteSaver(openDriver(join(folder, 'checkpoints.db'))),
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

/**
 * Node's own SQLite in the shape of the driver it expects, whose native code is not built when peers are
 * installed. As with that driver, a commit does not wait for the disk (`NORMAL`): it gives less than the others.
 */
function openDriver(path: string): object {
  const database = new DatabaseSync(path)
  database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL')
  return {
    pragma: (text: string) => database.exec(`PRAGMA ${text}`),
    exec: (text: string) => database.exec(text),
    prepare(text: string) {
      const statement = database.prepare(text)
      return {
        run: (...values: SQLInputValue[]) => statement.run(...values.map(orNull)),
        get: (...values: SQLInputValue[]) => statement.get(...values.map(orNull)),
        all: (...values: SQLInputValue[]) => statement.all(...values.map(orNull)),
      }
    },
    transaction:
      <Args extends unknown[]>(work: (...args: Args) => void) =>
      (...args: Args) => {
        database.exec('BEGIN')
        work(...args)
        database.exec('COMMIT')
      },
  }
}

function orNull(value: SQLInputValue | undefined): SQLInputValue {
  return value ?? null
}
