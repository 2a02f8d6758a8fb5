/**
 * OpenAI Agents: a run has a state that can be stored and resumed. This program stores it in a file after each item of the
 * run, and continues with it when it is started again. (A session alone is written when a run ends, so it knows less.)
 */
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { Agent, run, RunState, tool } from '@openai/agents'
import {
  instructions,
  modelId,
  refund,
  task,
  toolDescription,
  toolName,
  toolSchema,
} from './tool.ts'

const FILE = 'state.json'
const agent = new Agent({
  name: 'desk',
  instructions,
  model: modelId,
  tools: [
    tool({ name: toolName, description: toolDescription, parameters: toolSchema, execute: refund }),
  ],
})
const stored = existsSync(FILE) ? readFileSync(FILE, 'utf8') : undefined
const input = stored === undefined ? task : await RunState.fromString(agent, stored)
const result = await run(agent, input, { stream: true })
for await (const event of result) {
  if (event.type !== 'run_item_stream_event') continue
  writeFileSync(`${FILE}.new`, result.state.toString())
  renameSync(`${FILE}.new`, FILE)
}
await result.completed
console.log(result.finalOutput)
