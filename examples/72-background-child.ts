/**
 * A child that works in the background. The parent answers immediately; the child's result comes as a message,
 * and wakes it. The child lives on and can be spoken to again.
 *
 * Prints:
 *
 *     I have asked the archive.
 *     later: The archive found 3 letters.
 *     children: archive "letters" idle
 */

// #region program
import { createRuntime, defineAgent, definePrompt, defineTool } from '@skein/runtime'
import { calls, says, scripted } from '@skein/ai/testing'
import { z } from 'zod'

const report = defineTool({
  name: 'report',
  description: 'Ends the search.',
  args: z.object({ found: z.string() }),
  risk: 'read_only',
  execute: () => 'reported',
})
const searcher = scripted(() => calls('report', { found: '3 letters' }))
const archive = defineAgent({
  name: 'archive',
  type: 'dual_ai',
  maxSessionTurns: 10,
  exposeAsTool: true,
  toolDescription: 'Searches old papers.',
  sideA: {
    prompt: definePrompt({ name: 'searcher', prompt: 'Search.', model: searcher, tools: [report] }),
    sessionStop: { name: report, messageProperty: 'found' },
  },
  sideB: { prompt: definePrompt({ name: 'checker', prompt: 'Check.', model: scripted([]) }) },
})
const librarian = scripted(({ messages }) => {
  const report = messages.find((one) => one.type === 'user' && one.text.startsWith('Subagent ('))
  if (report?.type === 'user') return says(`The archive found ${report.text.split('\n\n')[1]}.`)
  if (messages.some(({ type }) => type === 'tool_result')) return says('I have asked the archive.')
  return calls('subagent_create', { agent: 'archive', name: 'letters', message: 'Find letters.' })
})
// #region tools
const tools = [{ name: archive, blocking: false, resumable: { maxInstances: 2 } }]
const desk = defineAgent({
  name: 'desk',
  instructions: 'Help.',
  model: librarian,
  tools,
})
// #endregion tools

const runtime = await createRuntime({ agents: [desk] })
await runtime.start()
const thread = await runtime.threads.create({ agent: 'desk' })
await runtime.threads.send(thread.id, 'Are there any letters?')
await runtime.idle()
const said = (await runtime.threads.messages(thread.id)).flatMap(({ message }) =>
  message.type === 'assistant' && message.text !== '' ? [message.text] : [],
)
console.log(said[0])
console.log(`later: ${said.at(-1)}`)
const children = await runtime.threads.children(thread.id)
for (const { name, threadName, status } of children)
  console.log(`children: ${name} "${threadName}" ${status}`)
await runtime.stop()
// #endregion program
