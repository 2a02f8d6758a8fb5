/**
 * Two models talk until the reviewer approves. Each side sees itself as the assistant. The same agent runs by
 * itself, or as a subagent of another one.
 *
 * Prints:
 *
 *     alone: completed (session_stop) Approved: draft 3
 *     the reviewer saw: user, user, assistant, user, assistant, user
 *     as a subagent: The studio says: Approved: draft 3
 */

// #region program
import { createRuntime, defineAgent, definePrompt, defineTool } from '@skein/runtime'
import { calls, says, scripted } from '@skein/ai/testing'
import { z } from 'zod'

const approve = defineTool({
  name: 'approve_asset',
  description: 'Accepts the asset.',
  args: z.object({ summary: z.string() }),
  risk: 'read_only',
  execute: () => 'approved',
})
const worker = scripted(({ messages }) =>
  says(`draft ${messages.filter(({ type }) => type === 'assistant').length + 1}`),
)
const reviewer = scripted(({ messages }) => {
  const last = messages.at(-1)!
  const draft = last.type === 'user' ? last.text : ''
  return draft === 'draft 3'
    ? calls('approve_asset', { summary: `Approved: ${draft}` })
    : says(`${draft} is too dark.`)
})
// #region pair
const pair = defineAgent({
  name: 'asset_subagent',
  type: 'dual_ai',
  maxSessionTurns: 40,
  exposeAsTool: true,
  toolDescription: 'Draws and checks an asset.',
  sideA: {
    label: 'Worker',
    prompt: definePrompt({ name: 'asset_worker', prompt: 'Draw.', model: worker }),
  },
  sideB: {
    label: 'Reviewer',
    prompt: definePrompt({
      name: 'asset_reviewer',
      prompt: 'Check.',
      model: reviewer,
      tools: [approve],
    }),
    stopOnResponse: false,
    sessionStop: { name: approve, messageProperty: 'summary' },
  },
})
// #endregion pair
const director = scripted(({ messages }) => {
  const last = messages.at(-1)!
  if (last.type !== 'tool_result') return calls('asset_subagent', { message: 'A small tree.' })
  return says(`The studio says: ${String(last.results[0]!.result)}`)
})
const studio = defineAgent({
  name: 'studio',
  instructions: 'Delegate.',
  model: director,
  tools: [pair],
})

const runtime = await createRuntime({ agents: [studio] })
await runtime.start()
const alone = await runtime.threads.create({ agent: 'asset_subagent' })
const { outcome, reason, text } = await runtime.threads.run(alone.id, 'A small tree.')
console.log(`alone: ${outcome} (${reason}) ${text}`)
const seen = reviewer.requests.at(-1)!.messages.map(({ type }) => type)
console.log(`the reviewer saw: ${seen.join(', ')}`)
const thread = await runtime.threads.create({ agent: 'studio' })
const answer = await runtime.threads.run(thread.id, 'I need a tree.')
console.log(`as a subagent: ${answer.text}`)
await runtime.stop()
// #endregion program
