/**
 * LangGraph: a graph with a checkpointer, resumed by its thread id, as its page on durable execution advises: `durability`
 * is `sync`, so a step is stored before the next one begins. Its SQLite saver needs a compiled package, so its
 * `MemorySaver` is kept in a file instead: after each write, as the saver for SQLite does.
 */
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { deserialize, serialize } from 'node:v8'
import { HumanMessage, SystemMessage } from '@langchain/core/messages'
import { tool } from '@langchain/core/tools'
import { END, MemorySaver, MessagesAnnotation, START, StateGraph } from '@langchain/langgraph'
import { ToolNode, toolsCondition } from '@langchain/langgraph/prebuilt'
import { ChatOpenAI } from '@langchain/openai'
import {
  instructions,
  modelId,
  refund,
  task,
  toolDescription,
  toolName,
  toolSchema,
} from './tool.ts'

const FILE = 'checkpoints.bin'

class FileSaver extends MemorySaver {
  constructor() {
    super()
    if (existsSync(FILE)) Object.assign(this, deserialize(readFileSync(FILE)))
  }

  override async put(...given: Parameters<MemorySaver['put']>): ReturnType<MemorySaver['put']> {
    const config = await super.put(...given)
    this.#save()
    return config
  }

  override async putWrites(...given: Parameters<MemorySaver['putWrites']>): Promise<void> {
    await super.putWrites(...given)
    this.#save()
  }

  #save(): void {
    writeFileSync(`${FILE}.new`, serialize({ storage: this.storage, writes: this.writes }))
    renameSync(`${FILE}.new`, FILE)
  }
}

const tools = [tool(refund, { name: toolName, description: toolDescription, schema: toolSchema })]
const model = new ChatOpenAI({ model: modelId }).bindTools(tools)
const graph = new StateGraph(MessagesAnnotation)
  .addNode('agent', async ({ messages }) => ({
    messages: [await model.invoke([new SystemMessage(instructions), ...messages])],
  }))
  .addNode('tools', new ToolNode(tools))
  .addEdge(START, 'agent')
  .addConditionalEdges('agent', toolsCondition, ['tools', END])
  .addEdge('tools', 'agent')
  .compile({ checkpointer: new FileSaver() })

const config = { configurable: { thread_id: 'refund O-7' }, durability: 'sync' as const }
const { createdAt } = await graph.getState(config)
// Without input, a thread continues after its last checkpoint.
const input = createdAt === undefined ? { messages: [new HumanMessage(task)] } : null
const { messages } = await graph.invoke(input, config)
console.log(messages.at(-1)?.text)
