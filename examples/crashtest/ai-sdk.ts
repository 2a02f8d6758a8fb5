/**
 * AI SDK: `ToolLoopAgent` works in memory. As its guide on message persistence advises, the messages are stored: here after
 * every step, so that a program that is started again continues with them. Its documentation leads to `WorkflowAgent`, which
 * needs the Workflow SDK and a bundler, for durable work; that is not tested here.
 */
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { type ModelMessage, stepCountIs, ToolLoopAgent, tool } from 'ai'
import { instructions, modelId, refund, task, toolDescription, toolSchema } from './tool.ts'

const FILE = 'messages.json'
const messages: ModelMessage[] = existsSync(FILE)
  ? (JSON.parse(readFileSync(FILE, 'utf8')) as ModelMessage[])
  : [{ role: 'user', content: task }]
const openai = createOpenAICompatible({
  name: 'openai',
  baseURL: 'https://api.openai.com/v1',
  apiKey: process.env['OPENAI_API_KEY'],
})
const agent = new ToolLoopAgent({
  model: openai(modelId),
  instructions,
  tools: {
    refund: tool({ description: toolDescription, inputSchema: toolSchema, execute: refund }),
  },
  stopWhen: stepCountIs(5),
})
if (messages.at(-1)?.role === 'assistant') console.log('It is done already.')
else {
  const { text } = await agent.generate({
    messages: [...messages],
    onStepFinish: ({ response }) => save([...messages, ...response.messages]),
  })
  console.log(text)
}

function save(all: readonly ModelMessage[]): void {
  writeFileSync(`${FILE}.new`, JSON.stringify(all))
  renameSync(`${FILE}.new`, FILE)
}
