/**
 * Two agents in one file: a desk answers people and asks a librarian, who has a tool. With `ANTHROPIC_API_KEY` in the
 * environment a real model answers; without it a scripted one, which is also how such an app is tested.
 *
 * Prints:
 *
 *     The loom book is on shelf 4.
 *     desk called librarian
 *     librarian called find_book
 */

// #region program
import anthropic from '@skein/ai/anthropic'
import { calls, says, scripted } from '@skein/ai/testing'
import { asSubagent, createRuntime, defineAgent, defineTool } from '@skein/runtime'
import { z } from 'zod'

const findBook = defineTool({
  name: 'find_book',
  description: 'Finds the shelf of a book by its title.',
  args: z.object({ title: z.string().describe('The title, or a word of it') }),
  risk: 'read_only',
  execute: (_state, { title }) => ({ title, shelf: 4 }),
})

const isReal = process.env['ANTHROPIC_API_KEY'] !== undefined
const model = isReal
  ? anthropic('claude-sonnet-4-5')
  : scripted(({ system, messages }) => {
      const isDesk = system === 'You are the front desk. Ask the librarian about books.'
      const last = messages.at(-1)
      if (last?.type === 'tool_result')
        return says(isDesk ? 'The loom book is on shelf 4.' : 'It is on shelf 4.')
      return isDesk
        ? calls('librarian', { message: 'Where is the loom book?' })
        : calls('find_book', { title: 'loom' })
    })

// #region agents
const librarian = defineAgent({
  name: 'librarian',
  description: 'Knows where every book is.',
  instructions: 'You are a librarian. Look books up before you answer.',
  model,
  tools: [findBook],
})

const desk = defineAgent({
  name: 'desk',
  instructions: 'You are the front desk. Ask the librarian about books.',
  model,
  tools: [asSubagent(librarian)],
})
// #endregion agents

const runtime = await createRuntime({ agents: [desk] })
await runtime.start()
const thread = await runtime.threads.create({ agent: 'desk' })
const { text } = await runtime.threads.run(thread.id, 'Where is the book about looms?')
console.log(text)
for (const { id, agent } of await runtime.threads.list({ rootId: thread.id, sort: 'oldest' })) {
  for (const { message } of await runtime.threads.messages(id)) {
    const names =
      message.type === 'assistant' ? message.toolCalls?.map((call) => call.toolName) : []
    if (names?.length) console.log(`${agent} called ${names.join(', ')}`)
  }
}
await runtime.stop()
// #endregion program
