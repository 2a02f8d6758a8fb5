/** A process that runs the turns of bench/scale.ts with LangGraph and its checkpoints in PostgreSQL. */
import { peer } from './runner/peers.ts'

interface Graph {
  invoke(
    input: { messages: readonly object[] },
    options: { configurable: { thread_id: string } },
  ): Promise<unknown>
}

const { createReactAgent } = await peer<{
  createReactAgent(options: { llm: object; tools: readonly unknown[]; checkpointer: object }): Graph
}>('@langchain/langgraph/prebuilt')
const { PostgresSaver } = await peer<{
  PostgresSaver: { fromConnString(url: string): { setup(): Promise<void> } }
}>('@langchain/langgraph-checkpoint-postgres')
const { tool } = await peer<{ tool(run: () => Promise<string>, options: object): unknown }>(
  '@langchain/core/tools',
)
const { BaseChatModel } = await peer<{
  BaseChatModel: new (fields: object) => { bindTools?(): unknown }
}>('@langchain/core/language_models/chat_models')
const { AIMessage } = await peer<{ AIMessage: new (fields: object) => object }>(
  '@langchain/core/messages',
)

/** Answers each message with one call, and then with a text, in no time. */
class Scripted extends BaseChatModel {
  _llmType(): string {
    return 'scripted'
  }

  override bindTools(): unknown {
    return this
  }

  async _generate(messages: readonly { getType(): string }[]): Promise<object> {
    const isResult = messages.at(-1)?.getType() === 'tool'
    const call = { id: crypto.randomUUID(), name: 'record', args: { text: 'x' }, type: 'tool_call' }
    const message = new AIMessage(
      isResult ? { content: 'Done.' } : { content: '', tool_calls: [call] },
    )
    return { generations: [{ message, text: '' }] }
  }
}

const saver = PostgresSaver.fromConnString(process.argv[2]!)
await saver.setup().catch(() => saver.setup()) // another process may be doing it
const record = tool(async () => 'recorded', {
  name: 'record',
  description: 'Records.',
  schema: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] },
})
const graph = createReactAgent({ llm: new Scripted({}), tools: [record], checkpointer: saver })

process.on(
  'message',
  ({ id, threadId, text }: { id: number; threadId?: string; text?: string }) => {
    if (threadId === undefined) {
      const { user, system } = process.cpuUsage()
      process.send?.({ id, value: String((user + system) / 1000) })
      return
    }
    process.send?.({ id })
    const input = { messages: [{ role: 'user', content: text }] }
    graph.invoke(input, { configurable: { thread_id: threadId } }).then(
      () => process.send?.({ parked: threadId }),
      (error: unknown) => console.error(error),
    )
  },
)
process.once('disconnect', () => process.exit(0))
process.send?.({})
