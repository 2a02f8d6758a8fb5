/**
 * What a thread keeps in addition to messages: files, values and scheduled effects. What a tool changes becomes true
 * together with its result, in one transaction.
 *
 * Prints:
 *
 *     /notes/today.md 11 bytes, text/markdown
 *     notes so far: 1
 *     the effect is due in 60 s
 *     a minute later: Remember: buy milk
 */

// #region program
import { createRuntime, defineAgent, defineEffect, defineTool } from '@skein/runtime'
import { manualTimers } from '@skein/runtime/testing'
import { calls, says, scripted } from '@skein/ai/testing'
import { z } from 'zod'

// #region tools
const remind = defineEffect({
  name: 'remind',
  args: z.object({ what: z.string() }),
  execute: (state, { what }) => void state.injectMessage({ content: `Remember: ${what}` }),
})
const note = defineTool({
  name: 'note',
  description: 'Writes a note and reminds of it.',
  args: z.object({ text: z.string() }),
  risk: 'read_only',
  execute: async (state, { text }) => {
    await state.writeFile('/notes/today.md', `- ${text}\n`)
    state.updateValue('notes', (count) => Number(count ?? 0) + 1)
    state.scheduleEffect('remind', { what: text }, 60_000)
    return 'noted'
  },
})
// #endregion tools
const model = scripted([calls('note', { text: 'buy milk' }), says('Noted.')])
const agent = defineAgent({ name: 'notes', instructions: 'You take notes.', model, tools: [note] })

const timers = manualTimers()
const runtime = await createRuntime({ agents: [agent], effects: [remind], clock: timers, timers })
await runtime.start()
const { id } = await runtime.threads.create({ agent: 'notes' })
await runtime.threads.run(id, 'Buy milk!')
// #region look
for (const { path, sizeBytes, mediaType } of await runtime.threads.files.list(id))
  console.log(`${path} ${sizeBytes} bytes, ${mediaType}`)
console.log(`notes so far: ${String(await runtime.threads.values.get(id, 'notes'))}`)
// #endregion look
const [effect] = await runtime.threads.effects.list(id)
console.log(`the effect is due in ${(Date.parse(effect!.at) - timers.now()) / 1000} s`)
await timers.advance(60_000)
await runtime.idle()
const messages = await runtime.threads.messages(id)
const last = messages.at(-1)!.message
console.log(`a minute later: ${last.type === 'user' ? last.text : ''}`)
await runtime.stop()
// #endregion program
