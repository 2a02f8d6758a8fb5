/**
 * An `agent()` of `@skein/agents` works in a program and, unchanged, as a side of a durable thread. Here its
 * strategy is `react()`, and a tool asks a person. The thread waits over a restart; then the strategy is run
 * again from the log, and neither the model nor a tool is asked twice for what the log has.
 *
 * Prints:
 *
 *     requests to the model before the restart: 2
 *     waiting: ask_editor {"title":"Tides"}
 *     completed: "Tides" is out: 42 readers wait for it.
 *     requests to the model: 6, tools that ran: ask_editor, search
 */

// #region program
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { agent } from '@skein/agents'
import { react } from '@skein/agents/execution'
import { defer, tool } from '@skein/ai'
import { calls, says, scripted } from '@skein/ai/testing'
import { createRuntime, defineAgent, type EmbeddedRuntime } from '@skein/runtime'
import { z } from 'zod'

const ran: string[] = []
const askEditor = tool({
  name: 'ask_editor',
  description: 'Asks the editor whether a text may be published.',
  parameters: z.object({ title: z.string() }),
  risk: 'read_only',
  run: ({ title }) => {
    ran.push('ask_editor')
    return defer({ kind: 'input', request: { question: `May "${title}" be published?` } })
  },
})
const search = tool({
  name: 'search',
  description: 'Counts the readers of a topic.',
  parameters: z.object({ topic: z.string() }),
  risk: 'read_only',
  run: ({ topic }) => {
    ran.push('search')
    return `42 readers wait for ${topic}`
  },
})
const model = scripted(({ messages, tools }) => {
  if (tools.length === 0) return says('What is the next thing to find out?')
  const results = messages.filter(({ type }) => type === 'tool_result').length
  if (results === 0) return calls('ask_editor', { title: 'Tides' })
  if (results === 1) return calls('search', { topic: 'tides' })
  return says('"Tides" is out: 42 readers wait for it.')
})
const researcher = agent({ model, tools: [search, askEditor], execution: react() })
const desk = defineAgent({ name: 'desk', sideA: { agent: researcher } })

const folder = await mkdtemp(join(tmpdir(), 'skein-'))
const secretKey = randomBytes(32) // in production from the environment, never next to the data
const open = async (): Promise<EmbeddedRuntime> => {
  const runtime = await createRuntime({ agents: [desk], folder, secretKey })
  await runtime.start()
  return runtime
}
const first = await open()
const thread = await first.threads.create({ agent: 'desk' })
const { waiting } = await first.threads.run(thread.id, 'Publish "Tides".')
console.log(`requests to the model before the restart: ${model.requests.length}`)
for (const { toolName, arguments: args } of waiting)
  console.log(`waiting: ${toolName} ${JSON.stringify(args)}`)
await first.stop()

const second = await open()
const [item] = await second.inbox.list()
await second.inbox.answer({ ...item!, by: 'pat' }, { type: 'result', value: 'Yes.' })
const { outcome, text } = await second.threads.settled(thread.id)
console.log(`${outcome}: ${text}`)
console.log(`requests to the model: ${model.requests.length}, tools that ran: ${ran.join(', ')}`)
await second.stop()
await rm(folder, { recursive: true })
// #endregion program
