/**
 * A recorded thread becomes a test. It is played back, which costs nothing, then replayed with other instructions: the
 * model is asked, and the tool answers from the recording.
 *
 * Prints:
 *
 *     played back: 38 events, the same: true
 *     unchanged: 3 requests recorded, 0 sent
 *     changed: instructions of concierge, at step 1, 3 sent, 0 tools ran
 *     The runs differ from step 3 on.
 *       user: Is there a table?
 *       availability({}) success → {"free":2}
 *     - agent: Two tables are free.
 *     + agent: 2 free.
 *       user: Thanks
 *     - agent: You are welcome.
 *     + agent: Bye.
 */

// #region record
import { calls, says, scripted } from '@skein/ai/testing'
import { diffRuns, diffText, playBack, readExport, readRecording, replay } from '@skein/evals'
import { createRegistry, createRuntime, defineAgent, defineTool, memoryStore } from '@skein/runtime'

let ran = 0
const availability = defineTool({
  name: 'availability',
  description: 'How many tables are free.',
  risk: 'read_only',
  execute: () => {
    ran++
    return { free: 2 }
  },
})
const concierge = (instructions: string, first: string, second: string) =>
  defineAgent({
    name: 'concierge',
    instructions,
    model: scripted([calls('availability'), says(first), says(second)]),
    tools: [availability],
  })

const store = memoryStore()
const agent = concierge('You find tables.', 'Two tables are free.', 'You are welcome.')
const runtime = await createRuntime({ agents: [agent], store })
await runtime.start()
const thread = await runtime.threads.create({ agent: 'concierge' })
await runtime.threads.run(thread.id, 'Is there a table?')
await runtime.threads.run(thread.id, 'Thanks')
const recorded = await readRecording(store, thread.id)
// #endregion record
ran = 0

// #region play-back
const registry = createRegistry({ agents: [agent] })
const played = await playBack(recorded, { registry })
console.log(`played back: ${played.events} events, the same: ${played.isSame}`)
// #endregion play-back

// #region replay
const unchanged = await replay(recorded, { registry })
console.log(
  `unchanged: ${unchanged.requests.recorded} requests recorded, ${unchanged.requests.sent} sent`,
)

const brief = concierge('You find tables. Be brief.', '2 free.', 'Bye.')
const changed = await replay(recorded, {
  registry: createRegistry({ agents: [brief] }),
  saveTo: runtime.threads,
})
const { summary, step } = changed.first!
console.log(`changed: ${summary}, at step ${step}, ${changed.requests.sent} sent, ${ran} tools ran`)
// #endregion replay

// #region diff
const fork = await readExport(await runtime.threads.export(changed.fork!))
console.log(diffText(diffRuns(recorded, fork)).split('\n').slice(0, -1).join('\n'))
// #endregion diff
await runtime.stop()
